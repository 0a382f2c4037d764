"""What tests share: builders, threads, and the unsafe versions that controls swap in."""
