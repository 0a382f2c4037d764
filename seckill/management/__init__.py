"""Command line tools of the flash sales."""
