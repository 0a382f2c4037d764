-- confirm: MySQL has these reservations. Idempotent: only what XDEL removes is counted.
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, epoch, highest sequence number, then per entry: stream id, order number, item, quantity
-- Reply number of entries confirmed, -1 not preheated, -7 unavailable or of another epoch
local gate, code = read_gate(ARGV[1])
if not gate then return code end
if gate.epoch ~= ARGV[2] or not is_whole(gate.epoch) then return -7 end
for i = 4, #ARGV, 4 do
  if not integer(redis.call('HGET', STOCK, ARGV[i + 2] .. ':queued')) then return -7 end
end

local confirmed = 0
for i = 4, #ARGV, 4 do
  if redis.call('XDEL', QUEUE, ARGV[i]) == 1 then
    redis.call('HINCRBY', STOCK, ARGV[i + 2] .. ':queued', -ARGV[i + 3])
    local receipt = redis.call('HGET', RECEIPTS, ARGV[i + 1])
    if receipt and string.sub(receipt, 1, 7) == 'queued|' then
      redis.call('HSET', RECEIPTS, ARGV[i + 1], 'confirmed' .. string.sub(receipt, 7))
    end
    confirmed = confirmed + 1
  end
end
if tonumber(ARGV[3]) > gate.settled_seq then redis.call('HSET', GATE, 'settled_seq', ARGV[3]) end
return confirmed
