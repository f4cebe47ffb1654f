"""What of a chat is sent to the model."""

from app.protocol import ChatMessage, Piece
from ui.chat.conversation import Conversation


def test_thoughts_and_unanswered_questions_are_left_out() -> None:
    chat = Conversation()
    chat.add_user("never answered")
    chat.add_user("one")
    answer = chat.add_answer()
    answer.append(Piece("hm", reasoning=True))
    answer.append(Piece("first"))
    chat.add_user("only thoughts came")
    chat.add_answer().append(Piece("hm", reasoning=True))
    chat.add_user("two")
    chat.add_answer()
    assert chat.prompt("Be brief.") == (
        ChatMessage("system", "Be brief."),
        ChatMessage("user", "one"),
        ChatMessage("assistant", "first"),
        ChatMessage("user", "two"),
    )


def test_an_empty_system_prompt_is_no_message() -> None:
    chat = Conversation()
    chat.add_user("hi")
    assert chat.prompt("  \n") == (ChatMessage("user", "hi"),)


def test_pieces_of_one_drafter_are_joined_and_others_kept_apart() -> None:
    message = Conversation().add_answer()
    for piece in (Piece("a"), Piece("b"), Piece("c", "cache"), Piece("d", "cache"), Piece("e")):
        message.append(piece)
    assert message.pieces == [Piece("ab"), Piece("cd", "cache"), Piece("e")]
    assert message.text == "abcde"


def test_truncating_drops_a_message_and_what_follows() -> None:
    chat = Conversation()
    first = chat.add_user("one")
    chat.add_answer()
    second = chat.add_user("two")
    chat.add_answer()
    chat.truncate(second)
    assert [message.role for message in chat.messages] == ["user", "assistant"]
    assert chat.last("user") is first
