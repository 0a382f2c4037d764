"""The tests on every stack of servers the shop is for: ``make test-matrix``; the result: ``var/matrix/report.json``."""
