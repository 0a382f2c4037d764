-- seal: the beginning of an archive. From now on the window is over for good, and only settlement changes the bucket:
-- it may confirm, release and drop what is queued already. A seal is never taken back.
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, epoch
-- Reply 1 sealed, also where it was; 0 the window is still open by Redis's clock, -1 not preheated,
--       -7 unavailable, frozen or of another epoch
local gate, code = read_gate(ARGV[1])
if not gate then return code end
if gate.epoch ~= ARGV[2] or gate.is_frozen or not is_whole(gate.epoch) then return -7 end
if gate.is_sealed then return 1 end
if now_ms() < gate.closes_ms then return 0 end
redis.call('HSET', GATE, 'sealed', '1', 'opens_ms', '0', 'closes_ms', '0')
return 1
