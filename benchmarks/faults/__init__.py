"""The fault matrix: each part of the shop is killed, stopped or restarted in the middle of a rush, and must heal."""
