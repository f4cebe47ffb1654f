"""Chats that were kept by LM Studio and Jan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chats.conversation import Conversation
from app.chats.errors import ChatsError
from app.chats.imported import ImportedChat
from app.chats.importing import read_chats, read_chats_file


def text(words: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": words}]


def lm_studio(*turns: dict[str, Any], **values: Any) -> dict[str, Any]:
    return {
        "name": "Rivers",
        "pinned": True,
        "createdAt": 1758392316161,
        "userLastMessagedAt": 1758392400000,
        "assistantLastMessagedAt": 1758392500000,
        "perChatPredictionConfig": {
            "fields": [
                {"key": "llm.prediction.temperature", "value": 0.7},
                {"key": "llm.prediction.systemPrompt", "value": "Be brief."},
            ]
        },
        "messages": list(turns),
        **values,
    }


def asked(*versions: str, selected: int = 0) -> dict[str, Any]:
    said = [{"type": "singleStep", "role": "user", "content": text(words)} for words in versions]
    return {"versions": said, "currentlySelected": selected}


def answered(*blocks: dict[str, Any]) -> dict[str, Any]:
    version = {
        "type": "multiStep",
        "role": "assistant",
        "senderInfo": {"senderName": "qwen3-4b"},
        "steps": list(blocks),
    }
    return {"versions": [version], "currentlySelected": 0}


def block(words: str, **values: Any) -> dict[str, Any]:
    return {"type": "contentBlock", "content": text(words), **values}


def conversation(imported: ImportedChat) -> Conversation:
    return Conversation(imported.messages, leaf=imported.chat.leaf)


def test_a_conversation_of_lm_studio_with_its_versions_and_thoughts() -> None:
    content = lm_studio(
        asked("Where do they go?", "Where do rivers go?", selected=1),
        answered(
            block("hm", style={"type": "thinking"}),
            block("To the sea."),
            {"type": "debugInfoBlock", "debugInfo": "left out"},
            block("Always."),
        ),
        asked("Thanks"),
    )
    [imported] = read_chats(json.dumps(content).encode())
    chat, shown = imported.chat, conversation(imported)
    assert (chat.title, chat.title_given, chat.pinned, chat.system_prompt) == (
        "Rivers",
        True,
        True,
        "Be brief.",
    )
    assert (chat.created_at, chat.updated_at) == (1758392316.161, 1758392500.0)
    question, answer, thanks = shown.messages
    assert [question.text, answer.text, thanks.text] == [
        "Where do rivers go?",
        "To the sea.\n\nAlways.",
        "Thanks",
    ]
    assert answer.reasoning == "hm" and answer.model == "qwen3-4b"
    assert shown.place(question) == (1, 2)  # the first version is there too
    assert [one.text for one in shown.siblings(question)] == ["Where do they go?", "Where do rivers go?"]


def test_turns_that_say_nothing_do_not_break_the_line() -> None:
    content = lm_studio(
        asked("one"),
        answered({"type": "contentBlock", "content": [{"type": "toolCallRequest"}]}),
        {"versions": []},
        {"versions": "none"},
        asked("two", selected=7),
        name="",
        createdAt="yesterday",
        perChatPredictionConfig=None,
        systemPrompt="  ",
    )
    [imported] = read_chats(json.dumps(content).encode())
    assert [message.text for message in conversation(imported).messages] == ["one", "two"]
    assert (imported.chat.title, imported.chat.title_given, imported.chat.system_prompt) == (
        "one",
        False,
        None,
    )


@pytest.mark.parametrize("turns", [[], [asked(" ")]])
def test_a_conversation_without_a_word_is_none(turns: list[dict[str, Any]]) -> None:
    with pytest.raises(ChatsError, match="no chat in it"):
        read_chats(json.dumps(lm_studio(*turns)).encode())


def jan(folder: Path, lines: list[Any], thread: Any = None) -> Path:
    folder.mkdir()
    said = folder / "messages.jsonl"
    said.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    if thread is not None:
        (folder / "thread.json").write_text(json.dumps(thread), encoding="utf-8")
    return said


def jan_message(role: str, words: str, when: int) -> dict[str, Any]:
    content = [{"type": "text", "text": {"value": words, "annotations": []}}]
    return {"id": "x", "object": "thread.message", "role": role, "content": content, "created_at": when}


@pytest.mark.parametrize("chosen", ["messages.jsonl", "thread.json"])
def test_a_thread_of_jan_by_either_of_its_files(tmp_path: Path, chosen: str) -> None:
    lines = [
        jan_message("assistant", "<think>\nhm\n</think>\n\nTo the sea.", 1698983510),
        jan_message("user", "Where do rivers go?", 1698983503),
        {"role": "system", "content": []},
        "no message",
    ]
    said = jan(tmp_path / "t", lines, {"title": "Rivers", "created": 1698983500, "updated": 1698983520000})
    [imported] = read_chats_file(said.with_name(chosen))
    question, answer = conversation(imported).messages
    assert (question.text, answer.text, answer.reasoning) == ("Where do rivers go?", "To the sea.", "hm")
    assert question.created_at == 1698983503
    assert (imported.chat.title, imported.chat.created_at, imported.chat.updated_at) == (
        "Rivers",
        1698983500,
        1698983520,
    )


def test_messages_of_jan_alone_and_damaged_ones(tmp_path: Path) -> None:
    said = jan(tmp_path / "a", [jan_message("user", "Hi", 1698983503000)])
    [imported] = read_chats_file(said)
    assert imported.chat.title == "Hi" and imported.chat.created_at == 1698983503
    for lines, why in (([], "no chat"), ([{"role": "user", "content": 7}], "no chat")):
        with pytest.raises(ChatsError, match=why):
            read_chats_file(jan(tmp_path / f"b{len(lines)}", lines))
    said.write_bytes(b'{"role": "user"\n')
    with pytest.raises(ChatsError, match="no JSON"):
        read_chats_file(said)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "messages",
                    "versions",
                    "role",
                    "content",
                    "steps",
                    "text",
                    "type",
                    "currentlySelected",
                    "value",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(_VALUES, st.lists(_VALUES, max_size=3))
def test_whatever_stands_there_is_a_chat_or_an_error(value: Any, versions: list[Any]) -> None:
    for content in (value, lm_studio({"versions": versions}, {"versions": value})):
        try:
            for imported in read_chats(json.dumps(content).encode()):
                assert imported.messages and conversation(imported).messages
        except ChatsError as error:
            assert error.kind == "unreadable"
