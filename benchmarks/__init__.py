"""Everything that runs the shop for real: private servers, the demo, the load tests."""
