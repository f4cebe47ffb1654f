"""An answer's text: characters cut across tokens, stops, attribution (A03, A04, D01)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.protocol import Piece
from app.worker.answer import Answer

END = 0


class Writer:
    """An answer whose tokens are the given byte strings, and everything it ever showed."""

    def __init__(
        self, pieces: Sequence[bytes], stops: Sequence[str] = (), closing: str | None = None
    ) -> None:
        self._pieces = pieces
        self.answer = Answer(lambda token: pieces[token - 1], frozenset([END]), stops, closing)
        self.shown: list[str] = []

    def take(self, *tokens: int) -> str | None:
        """Numbers count the pieces from 1; END ends."""
        for token in tokens:
            ended = self.answer.take(token)
            self._show()
            if ended:
                self.answer.finish()
                self._show()
                return ended
        return None

    def all(self, end: bool = False) -> Writer:
        """All pieces up to a stop, then the end (with its token, or as the length cap ends it)."""
        ended = self.take(*range(1, len(self._pieces) + 1))
        if ended is None:
            if end:
                self.take(END)
            else:
                self.answer.finish()
                self._show()
        return self

    def _show(self) -> None:
        self.shown += [piece.text for piece in self.answer.pieces(0, 0, None)]

    @property
    def stream(self) -> str:
        return "".join(self.shown)


def written(*pieces: str | bytes, stops: Sequence[str] = (), end: bool = False) -> Writer:
    """A whole answer."""
    writer = Writer([p.encode() if isinstance(p, str) else p for p in pieces], stops).all(end)
    assert writer.stream == writer.answer.text
    return writer


# ---- stops


def test_a_stop_in_the_middle_of_an_accepted_run() -> None:
    """A04: ids end before the stop, and so does the text."""
    writer = written("a", "b", "STOP", "c", "d", "e", stops=["STOP"])
    assert writer.answer.text == "ab"
    assert writer.answer.token_ids == (1, 2)
    assert writer.answer.taken == 3


def test_a_stop_across_tokens_is_not_shown_for_a_moment() -> None:
    writer = Writer([b"text", b"#", b"##\n", b"more"], ["###"])
    assert writer.take(1, 2) is None
    assert writer.stream == "text"
    assert writer.take(3) == "stop"
    assert writer.stream == writer.answer.text == "text"
    assert writer.answer.token_ids == (1,)


def test_what_only_looked_like_a_stop_is_text() -> None:
    assert written("a#", "#b", stops=["###"]).shown == ["a", "##b"]
    assert written("a##", stops=["###"]).answer.text == "a##"
    assert written("a##", stops=["###"], end=True).answer.text == "a##"


@pytest.mark.parametrize("stops", [["END", "X"], ["X", "END"]])
def test_the_earliest_of_several_stops_ends_the_answer(stops: list[str]) -> None:
    """A04: whatever their order in the list, and however the text is cut."""
    for pieces in (["aXbEND"], list("aXbEND"), ["aX", "bEND"], ["a", "XbE", "ND"]):
        assert written(*pieces, stops=stops).answer.text == "a"


def test_text_before_a_stop_inside_one_token() -> None:
    writer = written("one", " two STOP three", "four", stops=["STOP"])
    assert writer.answer.text == "one two "
    assert writer.answer.token_ids == (1, 2)  # the second token is partly visible


def test_a_stop_that_begins_in_the_middle_of_a_token() -> None:
    writer = written("ab", "cST", "OP", "d", stops=["STOP"])
    assert writer.answer.text == "abc"
    assert writer.answer.token_ids == (1, 2)


def test_a_stop_of_several_bytes_a_character() -> None:
    writer = written(b"a\xe6", b"\xbc", b"\xa2", "b", stops=["漢"])
    assert writer.answer.text == "a"
    assert writer.answer.token_ids == (1,)


def test_an_empty_stop_is_no_stop() -> None:
    assert written("abc", stops=[""]).answer.text == "abc"


def cuts(text: bytes, data: st.DataObject) -> list[bytes]:
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


@given(
    text=st.text("ab#X漢", max_size=20),
    stops=st.lists(st.text("ab#X漢", min_size=1, max_size=3), max_size=3),
    data=st.data(),
)
def test_text_does_not_depend_on_how_it_is_cut(text: str, stops: list[str], data: st.DataObject) -> None:
    """And no stop is ever shown, nor anything that later has to be taken back."""
    whole = written(*text, stops=stops)
    pieces = cuts(text.encode(), data)
    other = written(*pieces, stops=stops)
    assert other.answer.text == whole.answer.text
    assert text.startswith(whole.answer.text)
    assert not any(stop in whole.answer.text for stop in stops)
    if not any(stop in text for stop in stops):
        assert whole.answer.text == text
    visible = b"".join(pieces[i - 1] for i in other.answer.token_ids)
    assert visible.startswith(whole.answer.text.encode())
    if other.answer.token_ids:  # the last of them is seen
        assert len(visible) - len(pieces[other.answer.token_ids[-1] - 1]) < len(whole.answer.text.encode())


# ---- end tokens


def test_an_end_token_is_neither_text_nor_id() -> None:
    """A03."""
    writer = Writer([b"A", b"B", b"C", b"D"])
    assert writer.take(1, 2, END) == "stop"
    assert writer.answer.text == "AB"
    assert writer.answer.token_ids == (1, 2)
    assert writer.answer.taken == 3


def test_an_end_token_alone_is_an_empty_answer() -> None:
    writer = Writer([])
    assert writer.take(END) == "stop"
    assert (writer.answer.text, writer.answer.token_ids, writer.stream) == ("", (), "")


# ---- characters cut across tokens

CHARACTERS = "👩‍💻漢字é"


def test_one_byte_a_token() -> None:
    """D01: characters come whole, as soon as their last byte is there."""
    writer = written(*(bytes([byte]) for byte in CHARACTERS.encode()))
    assert writer.shown == list(CHARACTERS)
    assert writer.answer.token_ids == tuple(range(1, len(CHARACTERS.encode()) + 1))


def test_every_split_in_three() -> None:
    data = CHARACTERS.encode()
    for a, b in itertools.combinations_with_replacement(range(len(data) + 1), 2):
        writer = written(data[:a], data[a:b], data[b:])
        assert writer.answer.text == CHARACTERS
        assert "\ufffd" not in writer.stream


@pytest.mark.parametrize("end", [False, True])
def test_a_character_that_was_cut_off_is_dropped_with_its_tokens(end: bool) -> None:
    writer = written("a", b"\xe6", b"\xbc", end=end)
    assert writer.answer.text == "a"
    assert writer.answer.token_ids == (1,)
    partly = written("a", b"b\xe6", b"\xbc", end=end)
    assert partly.answer.text == "ab"
    assert partly.answer.token_ids == (1, 2)


def test_bytes_that_are_no_text_are_marked_and_do_not_stop_the_answer() -> None:
    assert written("a", b"\xff", "b").answer.text == "a\ufffdb"


# ---- thoughts


def test_thoughts_are_pieces_of_their_own() -> None:
    writer = Writer([b"<th", b"ink>plan", b"</think>\n", b"Answer"])
    writer.take(1, 2, 3, 4)
    writer.answer.finish()
    assert (writer.answer.reasoning, writer.answer.text) == ("plan", "Answer")
    assert not writer.answer.thinking


@pytest.mark.parametrize(
    ("pieces", "closing", "said"),
    [
        ([b"Hello", b" there"], None, [b"Hello", b" there"]),
        ([b"<", b"b>", b"bold"], None, [b"<", b"b>", b"bold"]),
        ([b"\n", b"Hello"], None, [b"\n", b"Hello"]),
        ([b"<think>", b"plan", b"</think>", b"\n", b"Answer", b"."], None, [b"Answer", b"."]),
        ([b"<think>", b"\n", b"</think>", b"Answer"], None, [b"Answer"]),
        ([b"plan", b"</think>", b"Answer"], "</think>", [b"Answer"]),
        ([b"plan"], "</think>", []),
        ([], None, []),
    ],
)
def test_what_was_said_is_told_from_what_was_thought(
    pieces: list[bytes], closing: str | None, said: list[bytes]
) -> None:
    writer = Writer(pieces, closing=closing).all()
    assert [pieces[token - 1] for token in writer.answer.said_ids] == said


def test_cut_while_thinking() -> None:
    writer = Writer([b"plan"], closing="</think>").all()
    assert writer.answer.thinking
    assert (writer.answer.reasoning, writer.answer.text) == ("plan", "")


# ---- who said it


def passes(
    pieces: list[bytes], *runs: tuple[int, int, str | None], stops: Sequence[str] = ()
) -> list[tuple[Piece, ...]]:
    """Take tokens by passes of (tokens, accepted, drafter), as the engine does."""
    answer = Answer(lambda token: pieces[token - 1], frozenset([END]), stops)
    numbers: Iterator[int] = itertools.count(1)
    result = []
    for n, accepted, drafter in runs:
        first = answer.taken
        for _ in range(n):
            answer.take(next(numbers))
        if answer.taken == len(pieces):
            answer.finish()
        result.append(answer.pieces(first, accepted, drafter))
    return result


def test_accepted_tokens_belong_to_their_drafter() -> None:
    got = passes([b"a", b"b", b"c", b"d", b"e"], (1, 0, None), (3, 2, "mod"), (1, 0, None))
    assert got == [(Piece("a"),), (Piece("bc", "mod"), Piece("d")), (Piece("e"),)]


def test_a_fully_accepted_run_cut_by_its_end_has_no_token_of_the_target() -> None:
    assert passes([b"a", b"b"], (2, 2, "cache")) == [(Piece("ab", "cache"),)]


def test_a_character_belongs_to_who_said_its_last_byte() -> None:
    got = passes([b"\xe6", b"\xbc", b"\xa2"], (1, 0, None), (2, 2, "mod"))
    assert got == [(), (Piece("漢", "mod"),)]


def test_thoughts_and_answer_of_one_pass_are_kept_apart() -> None:
    [got] = passes([b"<think>", b"a", b"</think>", b"b"], (4, 3, "mod"))
    assert got == (Piece("a", "mod", True), Piece("b"))


def test_pieces_are_given_once() -> None:
    answer = Answer(lambda token: b"a", frozenset([END]))
    answer.take(1)
    assert answer.pieces(0, 0, None) == (Piece("a"),)
    assert answer.pieces(0, 0, None) == ()
