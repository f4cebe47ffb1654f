"""Tests on real weights: tiny seeded models written on the spot, and the starter."""
