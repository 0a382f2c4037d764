"""The protocol as an explicit-state model; see docs/model.md."""
