"""Our neural drafters against llama-server's: the same tokens from the same files and settings."""
