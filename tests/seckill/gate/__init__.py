"""Tests of seckill/gate."""
