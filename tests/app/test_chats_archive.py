"""All chats in one file, and back."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from app.chats.archive import ArchiveStopped, archive_name, write_archive
from app.chats.chat import Chat
from app.chats.conversation import Conversation
from app.chats.importing import read_chats_file
from app.chats.message import Message
from app.chats.store import ChatStore
from app.protocol import Piece

_CHATS = 30  # more than are held in memory


@pytest.fixture
def store(tmp_path: Path) -> ChatStore:
    store = ChatStore(tmp_path / "chats.db")
    for number in range(_CHATS):
        conversation = Conversation()
        question = Message(role="user", pieces=[Piece(f"question {number}")])
        conversation.add(question)
        first = Message(role="assistant", pieces=[Piece("the first answer")])
        conversation.add(first)
        conversation.add_version(
            first, Message(role="assistant", pieces=[Piece("an\N{ZERO WIDTH SPACE}other")])
        )
        chat = Chat(
            title=f"Chat {number}",
            folder="Work/2" if number < 2 else "",
            pinned=number == 5,
            place=(question.id, 7),
        )
        store.add(chat, conversation)
    assert store.flush(60)
    store.add(
        Chat(title="Chat 0", folder="Work/2", created_at=5.0, updated_at=5.0)
    )  # it says nothing, long ago
    return store


def test_json_brings_every_chat_back_with_all_its_branches(store: ChatStore, tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    gone = next(chat for chat in store.chats() if chat.title == "Chat 9")
    store.delete(gone)
    write_archive(path, store.snapshot(), "json")
    assert store.close()
    back = read_chats_file(path)
    assert len(back) == _CHATS and gone.title not in [one.chat.title for one in back]
    by_title = {one.chat.title: one for one in back if one.messages}
    five = by_title["Chat 5"]
    assert five.chat.pinned and by_title["Chat 1"].chat.folder == "Work/2"
    assert sorted(message.text for message in five.messages) == sorted(
        ["question 5", "the first answer", "an\N{ZERO WIDTH SPACE}other"]
    )
    conversation = Conversation(five.messages, leaf=five.chat.leaf, started_at=0)
    assert [message.text for message in conversation.messages][-1] == "an\N{ZERO WIDTH SPACE}other"
    assert five.chat.place is None  # of a message that has another id now


def test_markdown_is_a_zip_with_a_file_for_each_in_its_folder(store: ChatStore, tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    write_archive(path, store.snapshot(), "markdown")
    assert store.close()
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert len(names) == len({name.casefold() for name in names}) == _CHATS + 1
        assert {name for name in names if "/" in name} == {
            "Work 2/Chat 0.md",
            "Work 2/Chat 0 (2).md",
            "Work 2/Chat 1.md",
        }
        text = archive.read("Chat 7.md").decode()
        assert "question 7" in text and "an\N{ZERO WIDTH SPACE}other" in text and "first answer" not in text
        assert min(entry.date_time for entry in archive.infolist()) == (1980, 1, 1, 0, 0, 0)


def test_what_is_changed_meanwhile_is_not_in_it(store: ChatStore, tmp_path: Path) -> None:
    chat = store.chats()[0]
    snapshot = store.snapshot()
    store.conversation(chat).add(Message(role="user", pieces=[Piece("too late")]))
    chat.title = "another"
    write_archive(tmp_path / "all.json", snapshot, "json")
    content = (tmp_path / "all.json").read_text()
    assert "too late" not in content and "another" not in content and len(snapshot) == _CHATS + 1
    assert store.close()


@pytest.mark.parametrize("kind", ["json", "markdown"])
def test_one_that_is_stopped_leaves_the_old_file(store: ChatStore, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "all.file"
    path.write_text("the old one")
    turns = iter([True] * 10)
    with pytest.raises(ArchiveStopped):
        write_archive(path, store.snapshot(), kind, lambda: next(turns, False))  # type: ignore[arg-type]
    assert path.read_text() == "the old one"
    assert sorted(one.name for one in tmp_path.iterdir() if not one.name.startswith("chats.")) == ["all.file"]
    assert store.close()


def test_its_name_has_the_day() -> None:
    assert archive_name("json", 0.0) in (
        "slipstream-chats-1970-01-01.json",
        "slipstream-chats-1969-12-31.json",
    )
    assert archive_name("markdown", 86400 * 2).endswith(".zip")
