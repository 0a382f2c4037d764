"""The figures of the shop, side by side in one run: what it accepts, turns away, tells and settles, and beside what."""
