"""The process that computes: requests in, events out. Nothing of it is imported by the window."""
