"""Speed made visible: the strip, the panel and the words for its figures."""
