"""Tests of the whole shop: web server, worker and beat as processes of their own."""
