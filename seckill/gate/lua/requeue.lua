-- requeue: put a parked reservation back into the queue, with a unit from the stock. Idempotent by the letter's number.
-- Where its receipt still stands, in the epoch it was parked in, mark and counter do too; else all is written anew.
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, epoch it was parked in, letter, order number, item, buyer, limit key, quantity, price, stream id
-- Reply 1 it is in the queue, 2 it was put there before, 0 too few units left, -1 not preheated, -2 limit reached,
--       -4 closed by the archive, -7 unavailable, -9 the order number was used again since
local gate, code = read_gate(ARGV[1], 'requeued:' .. ARGV[3])
if not gate then return code end
if gate.is_frozen or not is_whole(gate.epoch) then return -7 end
if gate.is_closed then return -4 end
if gate.further then return 2 end
local order_no, item, buyer, limit_key, quantity = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local queued_receipt = 'queued|' .. item .. '|' .. quantity .. '|' .. buyer
local receipt = redis.call('HGET', RECEIPTS, order_no)
local is_kept = receipt == queued_receipt and gate.epoch == ARGV[2]
if receipt and not is_kept then return -9 end
local stock = redis.call('HMGET', STOCK, item .. ':left', item .. ':queued')
local left, held = integer(stock[1]), integer(redis.call('HGET', BUYERS, limit_key) or '0')
if not (left and integer(stock[2]) and held and integer(quantity)) then return -7 end
if not is_kept and held + quantity > gate.limit then return -2 end
if left < tonumber(quantity) then return 0 end

if gate.epoch == ARGV[2] then redis.call('XDEL', QUEUE, ARGV[10]) end
redis.call('HINCRBY', STOCK, item .. ':left', -quantity)
if not is_kept then
  redis.call('HINCRBY', STOCK, item .. ':queued', quantity)
  redis.call('HINCRBY', BUYERS, limit_key, quantity)
  redis.call('HSET', RECEIPTS, order_no, queued_receipt)
end
redis.call('XADD', QUEUE, '*', 'order', order_no, 'item', item, 'buyer', buyer, 'key', limit_key,
  'quantity', quantity, 'price', ARGV[9], 'epoch', gate.epoch, 'seq', gate.seq + 1)
redis.call('HSET', GATE, 'seq', gate.seq + 1, 'requeued:' .. ARGV[3], '1')
return 1
