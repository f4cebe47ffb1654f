"""Small controls that several pages use."""
