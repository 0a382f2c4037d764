-- freeze: the beginning of a rebuild. No reservation passes until a swap by the same token.
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, token
-- Reply {1 frozen or 0 nothing to freeze, run id, last id of the queue or '', seq or '0', epoch or '0'}
local frozen, gate = 0, { false, false }
if redis.call('TYPE', GATE).ok == 'hash' then
  redis.call('HSET', GATE, 'frozen', ARGV[2])
  frozen, gate = 1, redis.call('HMGET', GATE, 'seq', 'epoch')
end
return { frozen, ARGV[1], last_queue_id(), integer(gate[1]) and gate[1] or '0', integer(gate[2]) and gate[2] or '0' }
