"""How long the unit of a closed order takes until somebody else can buy it."""
