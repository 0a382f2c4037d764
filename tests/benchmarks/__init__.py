"""Tests of what judges the shop: a judge that never finds anything proves nothing."""
