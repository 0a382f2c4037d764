-- The scripts run inside Redis: prelude.lua is put in front of each of the others.
std = "lua51"
read_globals = {
  "redis", "KEYS", "ARGV",
  "integer", "count", "sequence", "now_ms", "read_gate", "is_whole", "lower_mark", "last_queue_id",
  "EPOCH", "STOCK", "GATE", "BUYERS", "RECEIPTS", "QUEUE",
}
max_line_length = 120
files["**/prelude.lua"] = { ignore = { "211" } }
