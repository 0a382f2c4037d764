-- snapshot: all numbers of a bucket, checked to be numbers, and the head of its queue, at one instant.
-- O(entries and receipts asked for).
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, number of queue entries, order numbers
-- Reply {1, gate as a flat list, stock as a flat list, length of the queue, its first entries, receipts of the
--       order numbers}, {-1} not preheated, {-7} unavailable
local gate, code = read_gate(ARGV[1])
if not gate then return { code } end
if not is_whole(gate.epoch) then return { -7 } end
local stock = redis.call('HGETALL', STOCK)
for i = 1, #stock, 2 do
  if string.sub(stock[i], -6) ~= ':price' and not count(stock[i + 1]) then return { -7 } end
end
local receipts = {}
for i = 3, #ARGV do receipts[i - 2] = redis.call('HGET', RECEIPTS, ARGV[i]) or '' end
local entries = {}
if tonumber(ARGV[2]) > 0 then entries = redis.call('XRANGE', QUEUE, '-', '+', 'COUNT', ARGV[2]) end
return {
  1, redis.call('HGETALL', GATE), stock, redis.call('XLEN', QUEUE),
  entries, receipts,
}
