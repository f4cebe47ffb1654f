"""Moved to app.chats; this name goes once nothing imports it."""

from app.chats.conversation import Conversation
from app.chats.message import AnswerState, Message

__all__ = ["AnswerState", "Conversation", "Message"]
