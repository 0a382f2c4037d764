-- members: how many buyers and receipts a closed bucket has, and the receipts of some order numbers. O(asked).
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, epoch, order numbers
-- Reply {1, buyers, receipts (without the epoch's fields), per order number its receipt or ''}, {-1} not preheated,
--       {-7} unavailable, not closed or of another epoch
local gate, code = read_gate(ARGV[1])
if not gate then return { code } end
if gate.epoch ~= ARGV[2] or not gate.is_closed or not is_whole(gate.epoch) then return { -7 } end
local receipts = {}
for i = 3, #ARGV do receipts[i - 2] = redis.call('HGET', RECEIPTS, ARGV[i]) or '' end
return { 1, redis.call('HLEN', BUYERS) - 1, redis.call('HLEN', RECEIPTS) - 1, receipts }
