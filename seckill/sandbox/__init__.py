"""Only with ``SANDBOX=1``: items on which an app team can see every answer and every state."""
