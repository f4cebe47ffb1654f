"""Drafters, their chain, verification, the generation loop and its statistics. No Qt, no I/O."""
