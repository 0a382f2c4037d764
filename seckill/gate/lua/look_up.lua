-- look_up: the receipt of one order number.
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, order number
-- Reply {1, receipt} or {0, ''}, {-1, ''} not preheated, {-7, ''} unavailable
local gate, code = read_gate(ARGV[1])
if not gate then return { code, '' } end
local receipts = redis.pcall('HMGET', RECEIPTS, EPOCH, ARGV[2])
if receipts.err or receipts[1] ~= gate[1] or (gate[3] and gate[3] ~= '') then return { -7, '' } end
if not receipts[2] then return { 0, '' } end
return { 1, receipts[2] }
