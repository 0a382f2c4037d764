-- freeze: the beginning of a rebuild. No reservation passes until a swap by the same token.
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, token
-- Reply {1 frozen or 0 nothing to freeze, run id, last id of the queue or '', then seq, epoch and the highest
--       sequence number known to be in MySQL, each '0' where the gate does not say}
local frozen, gate = 0, {}
if redis.call('TYPE', GATE).ok == 'hash' then
  redis.call('HSET', GATE, 'frozen', ARGV[2])
  frozen, gate = 1, redis.call('HMGET', GATE, 'seq', 'epoch', 'settled_seq')
end
local seq, epoch, settled_seq = sequence(gate[1]), count(gate[2]), sequence(gate[3])
return {
  frozen, ARGV[1], last_queue_id(), seq and gate[1] or '0', epoch and gate[2] or '0', settled_seq and gate[3] or '0',
}
