-- look_up: the receipt of one order number, and the units a limit key holds.
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, order number, limit key
-- Reply {1, receipt or '', units held}, or {-1} not preheated, {-7} unavailable
local gate, code = read_gate(ARGV[1])
if not gate then return { code } end
local receipts = redis.pcall('HMGET', RECEIPTS, EPOCH, ARGV[2])
local buyers = redis.pcall('HMGET', BUYERS, EPOCH, ARGV[3])
if receipts.err or buyers.err or receipts[1] ~= gate.epoch or buyers[1] ~= gate.epoch or gate.is_frozen then
  return { -7 }
end
local held = integer(buyers[2] or '0')
if not held then return { -7 } end
return { 1, receipts[2] or '', held }
