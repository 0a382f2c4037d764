-- reserve: one purchase. Replay, window, limit, stock, deduction and hand-off in one step.
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, order number, item, buyer, limit key, quantity, price, end of the ticket (ms)
-- Reply {code, number, wake-up wanted; with code 0: how many buckets the pool has}
--    1 reserved              2 already yours            0 sold out, or fewer left than asked (the number left)
--   -1 not preheated        -2 limit reached (held)    -3 not started (ms until it opens)
--   -4 ended                -5 paused                  -6 busy                    -7 unavailable
--   -8 bad quantity         -9 conflict               -10 ticket expired         -11 price changed
-- Every check stands before the first write: Redis does not roll back a script that fails.
local run_id, order_no, item, buyer, limit_key = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local gate, code = read_gate(run_id, 'paused:' .. item)
if not gate then return { code, 0, 0 } end
local stock = redis.pcall('HMGET', STOCK, EPOCH, item .. ':left', item .. ':queued', item .. ':price')
local buyers = redis.pcall('HMGET', BUYERS, EPOCH, limit_key)
local receipts = redis.pcall('HMGET', RECEIPTS, EPOCH, order_no)
local waiting = redis.pcall('XLEN', QUEUE)
if stock.err or buyers.err or receipts.err or type(waiting) ~= 'number' then return { -7, 0, 0 } end
local left, held = count(stock[2]), integer(buyers[2] or '0')
if stock[1] ~= gate.epoch or buyers[1] ~= gate.epoch or receipts[1] ~= gate.epoch then return { -7, 0, 0 } end
if not (left and count(stock[3]) and stock[4] and held) then return { -7, 0, 0 } end

if receipts[2] then
  local wanted = '|' .. item .. '|' .. ARGV[6] .. '|' .. buyer
  if string.sub(receipts[2], -#wanted) ~= wanted then return { -9, 0, 0 } end
  return { 2, 0, 0 }
end
if gate.is_frozen then return { -7, 0, 0 } end
if gate.further then return { -5, 0, 0 } end
local now = now_ms()
if now < gate.opens_ms then return { -3, gate.opens_ms - now, 0 } end
if now >= gate.closes_ms then return { -4, 0, 0 } end
local ticket_end = integer(ARGV[8])
if not ticket_end or now >= ticket_end then return { -10, 0, 0 } end
if ARGV[7] ~= stock[4] then return { -11, 0, 0 } end
local quantity = integer(ARGV[6])
if not quantity or quantity < 1 then return { -8, 0, 0 } end
if held + quantity > gate.limit then return { -2, held, 0 } end
if left < quantity then
  local buckets = integer(redis.call('HGET', GATE, 'buckets') or '1')
  if not buckets then return { -7, 0, 0 } end
  return { 0, left, buckets }
end
if waiting >= gate.max_queue then return { -6, 0, 0 } end

redis.call('HINCRBY', STOCK, item .. ':left', -quantity)
redis.call('HINCRBY', STOCK, item .. ':queued', quantity)
redis.call('HINCRBY', BUYERS, limit_key, quantity)
redis.call('HSET', RECEIPTS, order_no, 'queued|' .. item .. '|' .. quantity .. '|' .. buyer)
redis.call('XADD', QUEUE, '*', 'order', order_no, 'item', item, 'buyer', buyer, 'key', limit_key,
  'quantity', quantity, 'price', ARGV[7], 'epoch', gate.epoch, 'seq', gate.seq + 1)
local wake = (waiting == 0 or now - gate.woken_ms >= 1000) and 1 or 0
if wake == 1 then
  redis.call('HSET', GATE, 'seq', gate.seq + 1, 'woken_ms', now)
else
  redis.call('HSET', GATE, 'seq', gate.seq + 1)
end
return { 1, 0, wake }
