"""The gate: the only code that speaks Redis about stock."""
