"""The settings page, drawn from the declarations."""
