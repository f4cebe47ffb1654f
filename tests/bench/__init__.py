"""Measurements that anyone can run; ratios from interleaved runs, never timed tests."""
