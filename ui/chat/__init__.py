"""The chat page: messages, composer and what happens between them."""
