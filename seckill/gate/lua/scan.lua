-- scan: some members of the buyers of a closed bucket. A cursor means something only to the run of the server that
-- gave it, and the members stand still only there; so both are checked each time. O(count).
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, epoch, cursor, about how many
-- Reply {1, next cursor ('0' at the end), members and their values by turns, the epoch's field among them; a member may
--       come twice}, {-1} not preheated, {-7} unavailable, not closed or of another epoch
local gate, code = read_gate(ARGV[1])
if not gate then return { code } end
if gate.epoch ~= ARGV[2] or not gate.is_closed or not is_whole(gate.epoch) then return { -7 } end
local found = redis.call('HSCAN', BUYERS, ARGV[3], 'COUNT', ARGV[4])
return { 1, found[1], found[2] }
