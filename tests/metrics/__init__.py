"""Tests of what the shop counts."""
