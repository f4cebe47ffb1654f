"""Tiny seeded GGUFs of several architectures, written in milliseconds and loaded by llama.cpp for real."""
