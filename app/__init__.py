"""What the product does without a screen: protocol, worker, engine client, chats, settings, CLI."""
