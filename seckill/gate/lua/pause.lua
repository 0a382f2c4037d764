-- pause: refuse new reservations of one item. Never brings a missing gate to life, never touches frozen.
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, item
-- Reply 1 done, 0 there is no gate to close, or it is sealed
if redis.call('TYPE', GATE).ok ~= 'hash' or not redis.call('HGET', GATE, 'epoch') then return 0 end
if redis.call('HEXISTS', GATE, 'sealed') == 1 then return 0 end
redis.call('HSET', GATE, 'paused:' .. ARGV[2], '1')
return 1
