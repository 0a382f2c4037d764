-- resume: take an operator's pause back. A frozen gate stays frozen.
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, item
-- Reply 1 done, 0 there is no gate, or it is sealed
if redis.call('TYPE', GATE).ok ~= 'hash' or not redis.call('HGET', GATE, 'epoch') then return 0 end
if redis.call('HEXISTS', GATE, 'sealed') == 1 then return 0 end
redis.call('HDEL', GATE, 'paused:' .. ARGV[2])
return 1
