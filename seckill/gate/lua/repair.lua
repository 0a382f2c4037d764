-- repair: correct the units left by deltas that a reconciliation has worked out and written down. Never below zero:
-- what was sold in between will be refused, and is no longer there to be taken away.
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, epoch, number of the last repair the reconciliation saw, then per item: item, delta
-- Reply {1, then per item the delta applied}, {0} another repair came first, {-1} not preheated,
--       {-7} unavailable, frozen, sealed or of another epoch
local gate, code = read_gate(ARGV[1])
if not gate then return { code } end
if gate.epoch ~= ARGV[2] or gate.is_frozen or gate.is_sealed or not is_whole(gate.epoch) then return { -7 } end
if gate.repair_no ~= tonumber(ARGV[3]) then return { 0 } end
local reply = { 1 }
for i = 4, #ARGV, 2 do
  local left = integer(redis.call('HGET', STOCK, ARGV[i] .. ':left'))
  if not left then return { -7 } end
  -- 0 - left, since -left of none is -0, which HINCRBY takes for no number, after the first write.
  reply[#reply + 1] = math.max(0 - left, tonumber(ARGV[i + 1]))
end

for i = 4, #ARGV, 2 do redis.call('HINCRBY', STOCK, ARGV[i] .. ':left', reply[i / 2]) end
redis.call('HINCRBY', GATE, 'repair_no', 1)
return reply
