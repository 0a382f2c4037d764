"""Tests of the project; they mirror its paths and run on real servers only."""
