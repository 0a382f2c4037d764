"""The steps of the protocol, one process per file."""
