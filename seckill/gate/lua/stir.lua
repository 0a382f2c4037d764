-- stir: write a field as it stands, so that what this connection waits for next includes all that was written before.
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id
-- Reply {1} written, {-1} not preheated, {-7} unavailable
-- See Note [What WAIT waits for] in seckill/gate/durable.py.
local gate, code = read_gate(ARGV[1])
if not gate then return { code } end
redis.call('HSET', GATE, 'epoch', gate.epoch)
return { 1 }
