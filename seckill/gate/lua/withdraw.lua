-- withdraw: take a bucket that nobody ever reserved anything in out of Redis.
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, epoch
-- Reply 1 it is gone, 0 something was reserved, -1 it was gone before, -7 unavailable, frozen or of another epoch
local gate, code = read_gate(ARGV[1])
if not gate then return code end
if gate.epoch ~= ARGV[2] or gate.is_frozen or gate.is_sealed or not is_whole(gate.epoch) then return -7 end
-- The queue of a rebuild begins with one entry, 0-1, that was removed; the two hashes with their epoch.
if last_queue_id() ~= '0-1' or redis.call('HLEN', RECEIPTS) > 1 or redis.call('HLEN', BUYERS) > 1 then return 0 end

redis.call('UNLINK', STOCK, GATE, BUYERS, RECEIPTS, QUEUE)
return 1
