-- wrk script: each request asks what became of a purchase. TICKETS names a file of lines "<order number> <ticket>",
-- which are sent again and again.
local path = os.getenv('TICKETS') or 'polls.txt'
local requests, position = {}, 0

function init()
  for line in io.lines(path) do
    local order_no, ticket = line:match('^(%S+) (%S+)$')
    local head = { ['Authorization'] = 'Ticket ' .. ticket }
    requests[#requests + 1] = wrk.format('GET', '/api/v1/purchases/' .. order_no .. '/', head)
  end
end

function request()
  position = position % #requests + 1
  return requests[position]
end
