"""The tree of a chat's messages: what is shown, what is sent, and that nothing said is lost."""

from app.chats.conversation import Conversation
from app.chats.message import Message
from app.protocol import ChatMessage, Piece


def said(chat: Conversation) -> list[str]:
    return [message.text for message in chat.messages]


def answered(chat: Conversation, question: str, answer: str) -> tuple[Message, Message]:
    asked, said = chat.add_user(question), chat.add_answer()
    said.append(Piece(answer))
    said.state = "done"
    return asked, said


def version(text: str, role: str = "assistant") -> Message:
    return Message(role=role, pieces=[Piece(text)])  # type: ignore[arg-type]


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


def test_another_answer_is_a_branch_and_the_first_is_kept() -> None:
    chat = Conversation()
    _, first = answered(chat, "q", "one")
    answered(chat, "and then?", "so on")
    second = chat.add_version(first, version("two"))
    assert said(chat) == ["q", "two"]
    assert (chat.place(first), chat.place(second)) == ((0, 2), (1, 2))
    chat.switch(first)
    assert said(chat) == ["q", "one", "and then?", "so on"]
    chat.switch(second)
    assert said(chat) == ["q", "two"]


def test_switching_goes_down_to_where_a_branch_was_left() -> None:
    chat = Conversation()
    first, _ = answered(chat, "q", "a")
    _, late = answered(chat, "more", "b1")
    chat.add_version(late, version("b2"))
    chat.switch(late)
    other = chat.add_version(first, version("another question", "user"))
    assert said(chat) == ["another question"]
    chat.switch(first)
    assert said(chat) == ["q", "a", "more", "b1"]
    chat.switch(other)
    assert said(chat) == ["another question"]


def test_what_an_answer_was_asked_with_is_told_for_any_branch() -> None:
    chat = Conversation()
    first, answer = answered(chat, "q", "a")
    _, late = answered(chat, "more", "b")
    chat.add_version(first, version("other", "user"))
    assert [message.content for message in chat.prompt_before(late)] == ["q", "a", "more"]
    assert [message.content for message in chat.prompt_before(answer, "S")] == ["S", "q"]


def test_removing_takes_what_follows_and_shows_the_version_before() -> None:
    chat = Conversation()
    question, first = answered(chat, "q", "one")
    second = chat.add_version(first, version("two"))
    after = chat.add_user("after two")
    assert chat.remove(second) == [second, after]
    assert said(chat) == ["q", "one"]
    assert second not in chat and len(chat) == 2
    chat.remove(question)
    assert not chat.messages and not len(chat)


def test_removing_what_is_not_shown_changes_nothing_on_screen() -> None:
    chat = Conversation()
    _, first = answered(chat, "q", "one")
    chat.add_version(first, version("two"))
    chat.remove(first)
    assert said(chat) == ["q", "two"]


def test_a_path_can_end_early_and_go_on_from_there() -> None:
    chat = Conversation()
    question, _ = answered(chat, "q", "a")
    chat.end_at(question)
    chat.add_answer().append(Piece("b"))
    assert said(chat) == ["q", "b"]
    chat.end_at(None)
    chat.add_user("fresh start")
    assert said(chat) == ["fresh start"]
    assert len(chat.children(None)) == 2


def test_what_was_read_in_any_order_makes_the_same_tree() -> None:
    chat = Conversation()
    _, first = answered(chat, "q", "one")
    chat.add_version(first, version("two"))
    answered(chat, "r", "three")
    read = Conversation(reversed(chat.everything), leaf=first.id)
    assert said(read) == ["q", "one"]
    newest = Conversation(chat.everything)
    assert said(newest) == ["q", "two", "r", "three"]


def test_a_parent_that_is_lost_or_a_circle_loses_no_message() -> None:
    messages = [Message(role="user", id=1, parent=9), Message(role="user", id=2, parent=2)]
    messages += [Message(role="user", id=3, parent=4), Message(role="user", id=4, parent=3)]
    chat = Conversation(messages)
    assert len(chat) == 4
    assert [message.id for message in chat.messages] == [3, 4]
    assert [message.id for message in chat.children(None)] == [1, 2, 3]


def test_what_was_removed_is_put_back_with_the_path_through_it() -> None:
    conversation = Conversation()
    first = conversation.add_user("one")
    answer = conversation.add(Message(role="assistant", pieces=[Piece("a")]))
    other = conversation.add_version(answer, Message(role="assistant", pieces=[Piece("b")]))
    tail = conversation.add_user("two")
    conversation.switch(answer)
    leaf = conversation.leaf
    removed = conversation.remove(first)
    assert len(conversation) == 0 and not conversation.messages
    assert conversation.put_back(removed, leaf)
    assert conversation.messages == (first, answer)
    assert conversation.siblings(answer) == (answer, other)
    assert conversation.children(other) == (tail,)
    removed = conversation.remove(answer)
    assert conversation.put_back(removed)
    assert conversation.siblings(other) == (answer, other)  # in the old order


def test_what_followed_something_that_is_gone_cannot_be_put_back() -> None:
    conversation = Conversation()
    question = conversation.add_user("one")
    answer = conversation.add(Message(role="assistant", pieces=[Piece("a")]))
    removed = conversation.remove(answer)
    conversation.remove(question)
    assert not conversation.put_back(removed)
    assert len(conversation) == 0
