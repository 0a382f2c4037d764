-- snapshot: all numbers of a bucket and the head of its queue, at one instant. O(entries asked for).
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, number of queue entries
-- Reply {1, gate as a flat list, stock as a flat list, length of the queue, its first entries},
--       {-1} not preheated, {-7} unavailable
local gate, code = read_gate(ARGV[1])
if not gate then return { code } end
if not is_whole(gate[1]) then return { -7 } end
return {
  1, redis.call('HGETALL', GATE), redis.call('HGETALL', STOCK), redis.call('XLEN', QUEUE),
  redis.call('XRANGE', QUEUE, '-', '+', 'COUNT', ARGV[2]),
}
