"""Measures the stock on several Redis nodes: ``make bench-cluster``."""
