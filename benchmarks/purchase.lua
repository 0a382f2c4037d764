-- wrk script: each request buys with a ticket of its own, from a file that `manage.py issue_tickets` wrote.
--
--   TICKETS=tickets.txt wrk -t1 -c64 -d5s --latency -s benchmarks/purchase.lua http://127.0.0.1:8000/api/v1/purchases/
--
-- A ticket is good for one unit, so a run begins where the last one has ended: TICKETS.next remembers. When all are
-- used the same ones are sent again, which is answered like the first time and reserves nothing: the number of
-- accepted purchases is to be read from the shop, not from here.
-- DELAY_MS lets each connection wait so long on average before it sends the next call; ATTEMPT is what the calls say
-- of themselves, 1 unless it is given.
local path = os.getenv('TICKETS') or 'tickets.txt'
local delay_ms = tonumber(os.getenv('DELAY_MS') or '0')
local rest = '","quantity":1,"attempt":' .. (os.getenv('ATTEMPT') or '1') .. '}'
local tickets, position = {}, 0
local head = { ['Content-Type'] = 'application/json' }
-- What stands in front of a body of some length; to put it together for each request costs wrk as much as to send it.
local fronts = {}

local function front_for(length)
  local sample = wrk.format('POST', nil, head, string.rep('x', length))
  fronts[length] = sample:sub(1, #sample - length)
  return fronts[length]
end

local function start_of(file)
  local handle = io.open(file .. '.next', 'r')
  if not handle then return 0 end
  local number = tonumber(handle:read('*l')) or 0
  handle:close()
  return number
end

function init()
  for ticket in io.lines(path) do tickets[#tickets + 1] = ticket end
  position = start_of(path)
end

function request()
  local ticket = tickets[position % #tickets + 1]
  position = position + 1
  local body = '{"ticket":"' .. ticket .. rest
  return (fronts[#body] or front_for(#body)) .. body
end

if delay_ms > 0 then
  function delay()
    return math.random(0, 2 * delay_ms)
  end
end

function done(summary)
  -- Read before the file is opened, which empties it. Those under way at the end were sent as well.
  local used = start_of(path) + summary.requests + 2000
  local handle = assert(io.open(path .. '.next', 'w'))
  handle:write(used)
  handle:close()
end
