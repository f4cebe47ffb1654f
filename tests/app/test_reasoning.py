"""Thoughts and answer are told apart, however the text arrives (D06)."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.reasoning import TAGS, ReasoningSplitter, held_back, opened_by


def split(chunks: Iterable[str], closing: str | None = None) -> tuple[str, str, bool]:
    """(thoughts, answer, still thinking at the end)."""
    splitter = ReasoningSplitter(closing)
    parts = [part for chunk in chunks for part in splitter.feed(chunk)] + splitter.finish()
    assert all(text for text, _ in parts)
    thoughts = "".join(text for text, thought in parts if thought)
    return thoughts, "".join(text for text, thought in parts if not thought), splitter.thinking


def test_thoughts_that_the_prompt_opened() -> None:
    closing = opened_by("<|im_start|>assistant\n<think>\n")
    assert closing == "</think>"
    assert split(["plan</think>Answer"], closing) == ("plan", "Answer", False)


@pytest.mark.parametrize(("opening", "closing"), TAGS)
def test_a_tag_in_pieces(opening: str, closing: str) -> None:
    text = f"{opening}plan{closing}Answer"
    for at in range(len(text)):
        assert split([text[:at], text[at:]]) == ("plan", "Answer", False)
    assert split(text) == ("plan", "Answer", False)


def test_half_a_tag_is_never_shown() -> None:
    splitter = ReasoningSplitter()
    assert splitter.feed("<th") == []
    assert splitter.feed("ink>a</") == [("a", True)]
    assert splitter.feed("think") == []
    assert splitter.feed(">b") == [("b", False)]


@pytest.mark.parametrize(
    "text",
    [
        "Use `<think>` for it.",
        "`<think>` opens thoughts, `</think>` ends them",
        "a <think>b</think>",
        "<thin",
        "<b>bold</b>",
        "[THINKING]",
        "  indented",
        "\n",
    ],
)
def test_anything_but_a_tag_at_the_start_is_answer(text: str) -> None:
    assert split([text]) == ("", text, False)
    assert split(text) == ("", text, False)


def test_cut_while_thinking() -> None:
    assert split(["<think>so far"]) == ("so far", "", True)
    assert split(["so far</thi"], "</think>") == ("so far</thi", "", True)


@pytest.mark.parametrize(
    "text", ["<think>\n\n</think>\n\nAnswer", "<think></think>Answer", "\n<think> </think> Answer"]
)
def test_empty_thoughts_vanish(text: str) -> None:
    assert split([text]) == ("", "Answer", False)
    assert split(text) == ("", "Answer", False)


def test_white_space_around_thoughts_is_dropped() -> None:
    text = "\n<think>\n one\n\n two \n</think>\n\n Answer \n"
    assert split([text]) == ("one\n\n two", "Answer \n", False)
    assert split(text) == ("one\n\n two", "Answer \n", False)


WORDS = st.lists(st.sampled_from([*sum(TAGS, ()), "<", "</", "th", "a", " ", "\n", "`", ">"]), max_size=8)


@given(words=WORDS, closing=st.sampled_from([None, "</think>"]), data=st.data())
def test_any_chunking_gives_the_same(words: list[str], closing: str | None, data: st.DataObject) -> None:
    text = "".join(words)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    chunks = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    whole = split([text], closing)
    assert split(chunks, closing) == whole
    assert split(text, closing) == whole


def test_the_prompt_opens_thoughts_only_at_its_end() -> None:
    assert opened_by("<think>\n</think>\n") is None
    assert opened_by("about <think> tags") is None
    assert opened_by("[THINK]") == "[/THINK]"
    assert opened_by("") is None


def test_what_is_held_back_is_the_longest_possible_beginning() -> None:
    assert held_back("ab#", ("###",)) == 1
    assert held_back("ab##", ("###",)) == 2
    assert held_back("ab", ("###",)) == 0
    assert held_back("xaba", ("abab", "ba!")) == 3
    assert held_back("x", ()) == 0
    assert held_back("", ("a",)) == 0
