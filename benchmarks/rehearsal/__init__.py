"""The rehearsal of a whole sale with locust, on the hardware that will sell."""
