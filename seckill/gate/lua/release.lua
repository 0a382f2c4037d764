-- release: MySQL has refused these reservations and their tombstones are written. Idempotent as confirm is.
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, epoch, highest sequence number, then per entry:
--       stream id, order number, item, quantity, limit key, units owed, reason
-- Reply number of entries released, -1 not preheated, -7 unavailable or of another epoch
local gate, code = read_gate(ARGV[1])
if not gate then return code end
if gate.epoch ~= ARGV[2] or not is_whole(gate.epoch) then return -7 end
for i = 4, #ARGV, 7 do
  local stock = redis.call('HMGET', STOCK, ARGV[i + 2] .. ':left', ARGV[i + 2] .. ':queued')
  if not integer(stock[1]) or not integer(stock[2]) then return -7 end
end

local released = 0
for i = 4, #ARGV, 7 do
  local order_no, item, quantity, limit_key = ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]
  if redis.call('XDEL', QUEUE, ARGV[i]) == 1 then
    redis.call('HINCRBY', STOCK, item .. ':queued', -quantity)
    local receipt = redis.call('HGET', RECEIPTS, order_no)
    if receipt and string.sub(receipt, 1, 7) == 'queued|' then
      redis.call('HINCRBY', STOCK, item .. ':left', ARGV[i + 5])
      lower_mark(limit_key, tonumber(quantity))
      redis.call('HSET', RECEIPTS, order_no, 'refused:' .. ARGV[i + 6] .. string.sub(receipt, 7))
    end
    released = released + 1
  end
end
if tonumber(ARGV[3]) > gate.settled_seq then redis.call('HSET', GATE, 'settled_seq', ARGV[3]) end
return released
