"""Measures drafting: fixed workloads through the same worker as every chat, and through a peer."""
