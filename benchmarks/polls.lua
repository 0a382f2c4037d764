-- wrk script: each request asks what became of a purchase. TICKETS names a file of lines "<order number> <ticket>",
-- which are sent again and again.
local path = os.getenv('TICKETS') or 'polls.txt'
local paths, heads, position = {}, {}, 0

function init()
  for line in io.lines(path) do
    local order_no, ticket = line:match('^(%S+) (%S+)$')
    paths[#paths + 1] = '/api/v1/purchases/' .. order_no .. '/'
    heads[#heads + 1] = { ['Authorization'] = 'Ticket ' .. ticket }
  end
end

function request()
  position = position % #paths + 1
  return wrk.format('GET', paths[position], heads[position])
end
