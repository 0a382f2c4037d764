"""Tests of the buyers' pages in a real browser: Chromium without a window, against the shop behind a real socket."""
