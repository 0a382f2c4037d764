"""The log of what operators did: written with the deed, read by auditors, changed by nobody."""
