-- Put in front of every script. It names the five keys of a bucket and holds what several of them do.
--
-- stock     hash    <item>:left, <item>:queued (units, plain integers), <item>:price (as on the tickets), #epoch
-- gate      hash    epoch, run_id, opens_ms, closes_ms, limit, max_queue, seq, settled_seq, woken_ms, repair_no,
--                   mend_no, adj_no and adj_applied (number of the last adjustment, units it changed), window_no,
--                   buckets (how many the pool has),
--                   frozen (a rebuild's token), paused:<item>,
--                   sealed (the archive has begun: 1, its queue is empty: 2)
-- buyers    hash    limit key -> units held, #epoch
-- receipts  hash    order number -> state|item|quantity|buyer, #epoch
-- queue     stream  reservations that MySQL does not have yet
local STOCK, GATE, BUYERS, RECEIPTS, QUEUE = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local EPOCH = '#epoch'

-- A plain decimal integer >= 0, as Redis itself would write it and Lua holds exactly, else nil: "1e3", " 10", "10.5",
-- "007" and "" are none, and HINCRBY would fail on them.
local function integer(text)
  if text and #text <= 14 and (text == '0' or string.find(text, '^[1-9]%d*$')) then return tonumber(text) end
  return nil
end

-- Counts (units, epochs, numbers of changes) and sequence numbers as MySQL's columns hold them. Anything above is a
-- hand's work, and damage: no column has room for it, and in the end Lua would not write it as a plain integer.
local COUNT_MAX, SEQ_MAX = 2000000000, 1000000000000

local function count(text)
  local number = integer(text)
  return number and number <= COUNT_MAX and number or nil
end

local function sequence(text)
  local number = integer(text)
  return number and number <= SEQ_MAX and number or nil
end

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The gate's fields by name, numbers as numbers but the epoch as text, and the further field asked for; or nil and why:
-- -1 nothing of the bucket is there, -7 it is damaged, or the server was restarted since it was checked.
local function read_gate(run_id, further)
  local present = redis.call('EXISTS', STOCK, GATE, BUYERS, RECEIPTS, QUEUE)
  if present == 0 then return nil, -1 end
  if present < 5 then return nil, -7 end
  local raw = redis.pcall('HMGET', GATE, 'epoch', 'run_id', 'frozen', 'opens_ms', 'closes_ms', 'limit', 'max_queue',
    'seq', 'settled_seq', 'woken_ms', 'adj_no', 'repair_no', further or 'epoch', 'sealed')
  if raw.err or raw[2] ~= run_id or not count(raw[1]) then return nil, -7 end
  local gate = {
    epoch = raw[1], is_frozen = raw[3] and raw[3] ~= '',
    opens_ms = integer(raw[4]), closes_ms = integer(raw[5]), limit = integer(raw[6]), max_queue = integer(raw[7]),
    seq = sequence(raw[8]), settled_seq = sequence(raw[9]), woken_ms = integer(raw[10]), adj_no = count(raw[11]),
    repair_no = count(raw[12]), further = raw[13], is_sealed = raw[14] and true, is_closed = raw[14] == '2',
  }
  if not (gate.opens_ms and gate.closes_ms and gate.limit and gate.max_queue and gate.seq and gate.settled_seq
      and gate.woken_ms and gate.adj_no and gate.repair_no) then
    return nil, -7
  end
  return gate
end

-- True where stock, buyers and receipts are hashes of this epoch and the queue is a stream.
local function is_whole(epoch)
  for _, key in ipairs({ STOCK, BUYERS, RECEIPTS }) do
    if redis.pcall('HGET', key, EPOCH) ~= epoch then return false end
  end
  return redis.call('TYPE', QUEUE).ok == 'stream'
end

-- Take units off a buyer's mark. One that is no number stays as it is, and its buyer shut out, until the comparison of
-- members writes it anew: a single mark must not hold up everybody else's units.
local function lower_mark(limit_key, quantity)
  local held = integer(redis.call('HGET', BUYERS, limit_key))
  if held and held > quantity then
    redis.call('HINCRBY', BUYERS, limit_key, -quantity)
  elseif held then
    redis.call('HDEL', BUYERS, limit_key)
  end
end

-- The id of the last entry ever added to the queue, removed ones included; '' where it is no stream.
local function last_queue_id()
  if redis.call('TYPE', QUEUE).ok ~= 'stream' then return '' end
  local info = redis.call('XINFO', 'STREAM', QUEUE)
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then return info[i + 1] end
  end
end
