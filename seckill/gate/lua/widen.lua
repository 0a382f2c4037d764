-- widen: the pool has more buckets now. Never fewer: whoever comes late changes nothing.
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, number of buckets
-- Reply 1, -1 not preheated, -7 unavailable
local gate, code = read_gate(ARGV[1], 'buckets')
if not gate then return code end
local buckets = integer(gate.further or '1')
if not buckets then return -7 end

if buckets < tonumber(ARGV[2]) then redis.call('HSET', GATE, 'buckets', ARGV[2]) end
return 1
