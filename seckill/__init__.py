"""Flash sales: the gate in Redis, settlement into MySQL, reconciliation of the two."""
