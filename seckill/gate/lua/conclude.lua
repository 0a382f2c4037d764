-- conclude: MySQL has the tombstone of a parked reservation. Idempotent: only a queued receipt of the epoch it was
-- parked in is changed. Its unit is not given back here: reconciliation does so, or has, once the leak is proved.
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, epoch it was parked in, order number, limit key, reason, stream id
-- Reply 1 concluded, 0 nothing to conclude, or closed for the archive, -1 not preheated, -7 unavailable
local gate, code = read_gate(ARGV[1])
if not gate then return code end
if not is_whole(gate.epoch) then return -7 end
if gate.epoch ~= ARGV[2] or gate.is_closed then return 0 end
local receipt = redis.call('HGET', RECEIPTS, ARGV[3]) or ''
local item, quantity = string.match(receipt, '^queued|(%d+)|(%d+)|%d+$')
if not item then return 0 end
local queued = integer(redis.call('HGET', STOCK, item .. ':queued'))
local held = integer(redis.call('HGET', BUYERS, ARGV[4]) or '0')
if not (queued and held and integer(quantity)) then return -7 end

-- Whoever parked it may have died before it was dropped; a release of it would count it a second time.
redis.call('XDEL', QUEUE, ARGV[6])
-- 0 - n, since -n of none is -0, which HINCRBY takes for no number.
redis.call('HINCRBY', STOCK, item .. ':queued', 0 - math.min(queued, tonumber(quantity)))
if held > tonumber(quantity) then
  redis.call('HINCRBY', BUYERS, ARGV[4], -quantity)
else
  redis.call('HDEL', BUYERS, ARGV[4])
end
redis.call('HSET', RECEIPTS, ARGV[3], 'refused:' .. ARGV[5] .. string.sub(receipt, 7))
return 1
