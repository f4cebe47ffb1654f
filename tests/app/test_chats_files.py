"""Chats as files: what goes out comes in again, and nothing malformed does harm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chats.chat import Chat
from app.chats.conversation import Conversation
from app.chats.errors import ChatsError
from app.chats.export import as_json, as_markdown, exported, suggested_name
from app.chats.imported import ImportedChat
from app.chats.importing import read_chats, read_chats_file
from app.chats.message import Message
from app.chats.sampling import SamplingChoice
from app.protocol import Piece
from drafting.statistics import DrafterCounts, Statistics


def branched() -> tuple[Chat, Conversation]:
    """Two answers to a question, the first shown, and a question after it."""
    chat = Chat(title="Trip *to* Lisbon", system_prompt="Be brief.", folder="Trips")
    chat.sampling = SamplingChoice(top_k=5)
    conversation = Conversation()
    conversation.add_user("Where?")
    first = conversation.add_answer()
    first.pieces = [Piece("hm", None, True), Piece("To "), Piece("Lisbon", "cache")]
    first.state, first.model, first.seed = "done", "toy", 7
    first.stats = Statistics(completion_tokens=3, by_drafter={"cache": DrafterCounts(drafted=2, accepted=1)})
    conversation.add_version(first, Message(role="assistant", pieces=[Piece("Home")], state="stopped"))
    conversation.switch(first)
    conversation.add_user("And then?")
    chat.leaf = conversation.messages[-1].id
    return chat, conversation


def shape(conversation: Conversation) -> list[Any]:
    """All of it but for the ids."""
    places = {message.id: i for i, message in enumerate(conversation.everything)}
    return [
        (
            places.get(message.parent) if message.parent is not None else None,
            message.role,
            message.pieces,
            message.state,
            message.stats,
            message.seed,
            message.model,
            message in conversation.messages,
        )
        for message in conversation.everything
    ]


def conversation_of(imported: ImportedChat) -> Conversation:
    return Conversation(imported.messages, leaf=imported.chat.leaf)


def test_what_goes_out_comes_in_again() -> None:
    chat, conversation = branched()
    [imported] = read_chats(as_json([(chat, conversation)]))
    assert shape(conversation_of(imported)) == shape(conversation)
    assert imported.chat.id != chat.id
    assert not {m.id for m in imported.messages} & {m.id for m in conversation.everything}
    assert (imported.chat.title, imported.chat.folder) == (chat.title, "Trips")
    assert (imported.chat.system_prompt, imported.chat.sampling) == ("Be brief.", SamplingChoice(top_k=5))


def test_markdown_is_what_is_shown() -> None:
    text = as_markdown(*branched())
    assert text.startswith("# Trip \\*to\\* Lisbon\n\n> Be brief.\n\n## You\n\nWhere?\n\n## toy\n\n<details>")
    assert "hm" in text and "To Lisbon\n\n## You\n\nAnd then?" in text
    assert "Home" not in text


def test_a_cut_answer_says_so_in_markdown() -> None:
    chat, conversation = branched()
    conversation.switch(conversation.everything[2])
    assert "Home\n\n*(The answer ends here.)*" in as_markdown(chat, conversation)


def test_a_file_has_a_name_that_every_system_takes() -> None:
    chat, conversation = branched()
    assert suggested_name(chat, "markdown") == "Trip to Lisbon.md"
    assert suggested_name(Chat(), "json") == "New chat.json"
    assert exported(chat, conversation, "json") == as_json([(chat, conversation)])


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"\xff\xfe\x00", "no JSON"),
        (b"[" * 100_000, "nested|no JSON"),
        (b"[]", "no chat"),
        (b"{}", "neither"),
        (b"7", "neither"),
        (b'[{"a": 1}]', "neither"),
        (b'{"format": "slipstream-chats", "version": 1}', "list of chats"),
        (b'{"format": "slipstream-chats", "version": "1", "chats": []}', "which version"),
        (b'{"format": "slipstream-chats", "version": 9, "chats": []}', "newer"),
        (b'{"format": "slipstream-chats", "version": 1, "chats": []}', "no chat"),
        (b'{"format": "slipstream-chats", "version": 1, "chats": [7]}', "no object"),
        (b'{"format": "slipstream-chats", "version": 1, "chats": [{"chat": {}}]}', "no messages"),
        (
            b'{"format": "slipstream-chats", "version": 1, "chats": [{"chat": {}, "messages": [{}]}]}',
            "neither who spoke",
        ),
        (
            b'{"format": "slipstream-chats", "version": 1, "chats": [{"chat": {}, "messages": [7]}]}',
            "neither who spoke",
        ),
        (b'[{"mapping": 7}]', "no messages"),
        (b'[{"mapping": {"a": 7}}]', "no chat"),
    ],
)
def test_a_malformed_file_is_refused_with_a_reason(content: bytes, why: str) -> None:
    with pytest.raises(ChatsError, match=why) as caught:
        read_chats(content)
    assert caught.value.kind == "unreadable"


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(ChatsError) as caught:
            read_chats_file(path)
        assert caught.value.kind == "unreadable"


def test_circles_and_lost_parents_lose_no_message() -> None:
    said = [
        {"role": "user", "id": 1, "parent": 2, "pieces": [["a"]]},
        {"role": "user", "id": 2, "parent": 1, "pieces": [["b"]]},
        {"role": "user", "id": 3, "parent": 99, "pieces": [["c"]]},
        {"role": "assistant", "id": 4, "parent": 3, "pieces": [["d!"]], "state": "writing"},
        {"role": "user", "id": 5, "parent": 5, "pieces": [["e"]]},
    ]
    content = {"format": "slipstream-chats", "version": 1, "chats": [{"chat": {"leaf": 4}, "messages": said}]}
    [imported] = read_chats(json.dumps(content).encode())
    conversation = conversation_of(imported)
    assert sorted(message.text for message in conversation.everything) == ["a", "b", "c", "d!", "e"]
    assert [message.text for message in conversation.messages] == ["c", "d!"]
    assert conversation.messages[-1].state == "interrupted"


NAMES = ("chat", "messages", "mapping", "role", "id", "parent", "pieces", "message", "author", "content")
MORE_NAMES = ("parts", "content_type", "title", "state", "leaf", "stats")
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES + MORE_NAMES), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(st.lists(st.dictionaries(st.sampled_from(["chat", "messages"]), values), max_size=3), values)
def test_no_file_does_harm(ours: list[Any], mapping: Any) -> None:
    for content in (
        {"format": "slipstream-chats", "version": 1, "chats": ours},
        [{"mapping": mapping, "title": "x"}],
        [{"mapping": {"a": {"message": mapping, "parent": "a"}}, "current_node": "a"}],
    ):
        try:
            chats = read_chats(json.dumps(content).encode())
        except ChatsError as error:
            assert error.kind == "unreadable"
        else:
            for imported in chats:
                assert len(conversation_of(imported)) == len(imported.messages)
                as_json([(imported.chat, conversation_of(imported))])


# ---- ChatGPT


def node(parent: str | None, role: str, *parts: Any, kind: str = "text", **more: Any) -> dict[str, Any]:
    message = {"author": {"role": role}, "content": {"content_type": kind, "parts": list(parts)}, **more}
    return {"parent": parent, "message": message}


def test_chatgpts_export_becomes_a_tree() -> None:
    content = [
        {
            "title": "Cats",
            "create_time": 1_700_000_000.5,
            "update_time": 1_700_000_100,
            "current_node": "tool",
            "mapping": {
                "root": {"parent": None, "message": None},
                "system": node("root", "system", "You are"),
                "q": node("system", "user", "Why?", {"image": 1}, kind="multimodal_text", create_time=1.7e9),
                "a1": node("q", "assistant", "Because.", metadata={"model_slug": "gpt-4"}),
                "a2": node("q", "assistant", "Therefore."),
                "call": node("a2", "assistant", "search()", recipient="browser"),
                "tool": node("call", "tool", "found"),
                "empty": node("tool", "assistant", ""),
            },
        },
        {"title": None, "mapping": {"only": node(None, "user", "# A *title*")}},
        {"title": "nothing said", "mapping": {"root": {"message": None}}},
    ]
    cats, untitled = read_chats(json.dumps(content).encode())
    conversation = conversation_of(cats)
    assert [message.text for message in conversation.messages] == ["Why?", "Therefore."]
    first = conversation.siblings(conversation.messages[1])[0]
    assert (first.text, first.model) == ("Because.", "gpt-4")
    assert (cats.chat.label, cats.chat.title_given) == ("Cats", True)
    assert (cats.chat.created_at, cats.chat.updated_at) == (1_700_000_000.5, 1_700_000_100)
    assert conversation.messages[0].created_at == 1.7e9
    assert untitled.chat.label == "A title"


def test_a_thousand_nodes_in_a_row_are_no_matter() -> None:
    mapping = {"0": node(None, "user", "start")}
    for i in range(1, 3000):
        mapping[str(i)] = node(str(i - 1), "tool" if i % 2 else "user", f"m{i}")
    [imported] = read_chats(json.dumps({"mapping": mapping, "current_node": "2999"}).encode())
    assert len(conversation_of(imported).messages) == 1500
