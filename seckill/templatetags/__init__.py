"""Filters of the buyers' pages."""
