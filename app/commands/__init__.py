"""What ``slipstream`` does in a terminal: a file for each command."""
