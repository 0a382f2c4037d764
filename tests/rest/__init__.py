"""Tests of what the API views share."""
