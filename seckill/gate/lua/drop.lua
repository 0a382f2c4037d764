-- drop: these entries cannot be read and are kept in MySQL as dead letters. Counters and receipts stay:
-- nobody knows whose they were. Reconciliation counts what is really queued and shows the difference.
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, epoch, stream ids
-- Reply number of entries dropped, -1 not preheated, -7 unavailable or of another epoch
local gate, code = read_gate(ARGV[1])
if not gate then return code end
if gate.epoch ~= ARGV[2] or not is_whole(gate.epoch) then return -7 end
local dropped = 0
for i = 3, #ARGV do dropped = dropped + redis.call('XDEL', QUEUE, ARGV[i]) end
return dropped
