"""Owning, typed wrappers over llama.cpp; the only package that imports llama_cpp."""
