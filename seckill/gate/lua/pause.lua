-- pause: refuse new reservations of one item. Never brings a missing gate to life, never touches frozen.
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, item, mark: 1, or "stop" for a pause that MySQL does not know of yet; one that is there keeps its own
-- Reply 1 done, 0 there is no gate to close, or it is sealed
if redis.call('TYPE', GATE).ok ~= 'hash' or not redis.call('HGET', GATE, 'epoch') then return 0 end
if redis.call('HEXISTS', GATE, 'sealed') == 1 then return 0 end
redis.call(ARGV[3] == 'stop' and 'HSETNX' or 'HSET', GATE, 'paused:' .. ARGV[2], ARGV[3])
return 1
