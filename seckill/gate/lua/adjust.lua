-- adjust: change the units left of an item by a numbered delta: an approved one, all of it or nothing, or a transfer's,
-- which takes what is there. A refusal takes the number too: whoever comes late with it finds it used.
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, epoch, number, item, delta, "all" or "some" of it
-- Reply {1, units changed, units left}: now, or when the number was first tried; 0 changed: fewer are left
--       {-1} not preheated, {-7} unavailable, frozen, of another epoch, or the number before is missing
local gate, code = read_gate(ARGV[1], 'adj_applied')
if not gate then return { code } end
if gate.epoch ~= ARGV[2] or gate.is_frozen or gate.is_sealed or not is_whole(gate.epoch) then return { -7 } end
local number, delta = tonumber(ARGV[3]), tonumber(ARGV[5])
local left = integer(redis.call('HGET', STOCK, ARGV[4] .. ':left'))
if not left then return { -7 } end
if gate.adj_no >= number then
  local applied = gate.adj_no == number and tonumber(gate.further or '0') or 0
  return { 1, applied, left }
end
if gate.adj_no + 1 ~= number then return { -7 } end
-- 0 - left, since -left of none is -0, which HINCRBY takes for no number.
local applied = left + delta >= 0 and delta or (ARGV[6] == 'some' and 0 - left or 0)

redis.call('HINCRBY', STOCK, ARGV[4] .. ':left', applied)
redis.call('HSET', GATE, 'adj_no', number, 'adj_applied', applied)
return { 1, applied, left + applied }
