-- mend: write marks and receipts anew, as MySQL has them. Each only where it still is what the look saw, and all only
-- where no other mend, no rebuild and no restart came in between.
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, epoch, number of the last mend the look saw, number of marks,
--       per mark: limit key, '=' and the text seen or '' for none, units held,
--       then per receipt: order number, '=' and the text seen or '' for none, the receipt
-- Reply {1, then per member 1 written or 0 it has changed}, {0} another mend came first, {-1} not preheated,
--       {-7} unavailable, frozen, sealed or of another epoch
local gate, code = read_gate(ARGV[1])
if not gate then return { code } end
if gate.epoch ~= ARGV[2] or gate.is_frozen or gate.is_sealed or not is_whole(gate.epoch) then return { -7 } end
local mend_no = redis.call('HGET', GATE, 'mend_no') or '0'
if mend_no ~= ARGV[3] then return { 0 } end
for i = 5, 4 + 3 * tonumber(ARGV[4]), 3 do
  if not integer(ARGV[i + 2]) or ARGV[i] == EPOCH then return { -7 } end
end

local reply = { 1 }
for i = 5, #ARGV, 3 do
  local key = i < 5 + 3 * tonumber(ARGV[4]) and BUYERS or RECEIPTS
  local now = redis.call('HGET', key, ARGV[i])
  if (now and '=' .. now or '') ~= ARGV[i + 1] then
    reply[#reply + 1] = 0
  else
    if ARGV[i + 2] == '0' then redis.call('HDEL', key, ARGV[i]) else redis.call('HSET', key, ARGV[i], ARGV[i + 2]) end
    reply[#reply + 1] = 1
  end
end
redis.call('HSET', GATE, 'mend_no', (integer(mend_no) or 0) + 1)
return reply
