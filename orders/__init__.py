"""Orders, their life cycle and their events; knows nothing of Redis, pools or sales."""
