"""Products, SKUs, warehouse stock and the ledger of every stock movement."""
