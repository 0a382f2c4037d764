-- restock: units of closed orders, which MySQL has counted as returned, can be bought again. Idempotent:
-- only a receipt that is confirmed changes anything.
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, epoch, then per order: order number, item, quantity, limit key, units back
-- Reply {1, then per order 1 done or 0 still queued: come again}, {-1} not preheated,
--       {-7} unavailable, sealed or of another epoch
local gate, code = read_gate(ARGV[1])
if not gate then return { code } end
if gate.epoch ~= ARGV[2] or gate.is_sealed or not is_whole(gate.epoch) then return { -7 } end
for i = 3, #ARGV, 5 do
  if not integer(redis.call('HGET', STOCK, ARGV[i + 1] .. ':left')) then return { -7 } end
end

local reply = { 1 }
for i = 3, #ARGV, 5 do
  local order_no, item, quantity, limit_key = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local receipt = redis.call('HGET', RECEIPTS, order_no)
  if receipt and string.sub(receipt, 1, 7) == 'queued|' then
    reply[#reply + 1] = 0
  else
    if receipt and string.sub(receipt, 1, 10) == 'confirmed|' then
      redis.call('HINCRBY', STOCK, item .. ':left', ARGV[i + 4])
      lower_mark(limit_key, tonumber(quantity))
      redis.call('HSET', RECEIPTS, order_no, 'returned' .. string.sub(receipt, 10))
    end
    reply[#reply + 1] = 1
  end
end
return reply
