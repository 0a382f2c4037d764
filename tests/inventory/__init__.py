"""Tests of inventory."""
