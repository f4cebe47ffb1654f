"""The local server: the engine behind the interface that OpenAI's clients speak."""
