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
for i = 1, 3 do
  if not integer(gate[i]) then gate[i] = '0' end
end
return { frozen, ARGV[1], last_queue_id(), gate[1], gate[2], gate[3] }
