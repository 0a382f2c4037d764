-- close: from now on nothing at all changes a sealed bucket, settlement and dead letters included. Only where its queue
-- is empty: then everything it ever reserved is in MySQL.
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, epoch
-- Reply 1 closed, also where it was; 0 something is queued, -1 not preheated, -7 unavailable, not sealed, frozen or of
--       another epoch
local gate, code = read_gate(ARGV[1])
if not gate then return code end
if gate.epoch ~= ARGV[2] or gate.is_frozen or not gate.is_sealed or not is_whole(gate.epoch) then return -7 end
if redis.call('XLEN', QUEUE) > 0 then return 0 end
redis.call('HSET', GATE, 'sealed', '2')
return 1
