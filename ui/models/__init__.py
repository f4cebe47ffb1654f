"""Models: what is here, what can be had, and what is in use."""
