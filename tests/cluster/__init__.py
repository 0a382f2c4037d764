"""Tests of the stock in a Redis Cluster, run with ``--cluster``, and behind Sentinels."""
