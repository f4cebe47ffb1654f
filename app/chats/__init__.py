"""What a person keeps of talking to models: chats, their messages, and the file that holds them."""
