-- compare: marks of limit keys, receipts of order numbers and the head of the queue, as they stand at one instant.
-- Nothing is judged here: a mark or a receipt may be any text. O(members and entries asked for).
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, number of queue entries, number of limit keys, limit keys, order numbers
-- Reply {1, epoch, highest settled sequence number, number of the last mend, 1 frozen or 0, length of the queue, its
--       first entries, marks, receipts}, {-1} not preheated, {-7} unavailable or sealed
local gate, code = read_gate(ARGV[1])
if not gate then return { code } end
if gate.is_sealed or not is_whole(gate.epoch) then return { -7 } end
local first_number = 4 + tonumber(ARGV[3])
local marks, receipts = {}, {}
if first_number > 4 then marks = redis.call('HMGET', BUYERS, unpack(ARGV, 4, first_number - 1)) end
if first_number <= #ARGV then receipts = redis.call('HMGET', RECEIPTS, unpack(ARGV, first_number)) end
return {
  1, gate.epoch, gate.settled_seq, redis.call('HGET', GATE, 'mend_no') or '0', gate.is_frozen and 1 or 0,
  redis.call('XLEN', QUEUE), redis.call('XRANGE', QUEUE, '-', '+', 'COUNT', ARGV[2]), marks, receipts,
}
