"""Tests of the action log."""
