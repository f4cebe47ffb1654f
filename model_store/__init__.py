"""GGUF files on disk: reading headers, listing the models folder, finding the starter."""
