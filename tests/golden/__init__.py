"""Golden prompts: drafting must not change a token of their answers. ``python -m tests.golden`` runs them."""
