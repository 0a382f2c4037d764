"""Who is asking: accounts, their tokens, and who is kept out. Knows nothing of goods, orders or sales."""
