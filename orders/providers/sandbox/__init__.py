"""The sandbox provider: pays with no money, and misbehaves like a real one when asked to.

It stands for another company: its state is in its own tables, it knows the shop only by the address its
notifications go to, and the shop knows it only through the interface.
"""
