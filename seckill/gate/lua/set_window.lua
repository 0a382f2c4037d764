-- set_window: when the sale opens and closes, as MySQL has it by now. A late call of an earlier change loses by its
-- number.
--
-- KEYS  stock gate buyers receipts queue
-- ARGV  run id, number, opens_ms, closes_ms
-- Reply 1 done, now or before, -1 not preheated, -7 unavailable or frozen
local gate, code = read_gate(ARGV[1], 'window_no')
if not gate then return code end
if gate.is_frozen or gate.is_sealed or not is_whole(gate.epoch) then return -7 end
local number = integer(gate.further or '0')
if not (number and integer(ARGV[3]) and integer(ARGV[4])) then return -7 end
if number < tonumber(ARGV[2]) then
  redis.call('HSET', GATE, 'window_no', ARGV[2], 'opens_ms', ARGV[3], 'closes_ms', ARGV[4])
end
return 1
