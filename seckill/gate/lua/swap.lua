-- swap: the end of a rebuild. Old keys go to the trash, staging comes into place, the gate is open again;
-- only where nothing has changed since freeze.
--
-- KEYS  1-5 stock gate buyers receipts queue, 6-10 the same in staging, 11-15 the same in the trash
-- ARGV  run id, run id at freeze, token, last id of the queue at freeze, epoch of the staging
-- Reply 1 done, 0 something has changed, -7 the server was restarted since
if ARGV[1] ~= ARGV[2] then return -7 end
if redis.call('TYPE', GATE).ok == 'hash' then
  local gate = redis.call('HMGET', GATE, 'frozen', 'epoch')
  local epoch = count(gate[2])
  if gate[1] ~= ARGV[3] or (epoch and epoch >= tonumber(ARGV[5])) then return 0 end
end
if last_queue_id() ~= ARGV[4] then return 0 end
for i = 6, 9 do
  local field = i == 7 and 'epoch' or EPOCH
  if redis.call('HGET', KEYS[i], field) ~= ARGV[5] then return 0 end
end
if redis.call('TYPE', KEYS[10]).ok ~= 'stream' then return 0 end

for i = 1, 5 do
  if redis.call('EXISTS', KEYS[i]) == 1 then redis.call('RENAME', KEYS[i], KEYS[i + 10]) end
end
for i = 1, 5 do
  redis.call('RENAME', KEYS[i + 5], KEYS[i])
end
return 1
