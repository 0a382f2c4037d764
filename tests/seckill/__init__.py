"""Tests of seckill."""
