"""What drafting learns from a person's answers: kept on disk for each tokenizer, and looked up."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from filelock import Timeout

from app.answers_folder import SUFFIX, lock_answers
from app.worker.answer_file import MAX_BYTES, AnswerFileError, decode, encode
from drafting.follower_counts import Ints
from drafting.past_answers import PastAnswers
from model_store.files import write_atomically

log = logging.getLogger(__name__)

MAX_TOKENS = 131_072
"""Token ids kept for a tokenizer, the oldest answers dropped: half a megabyte on disk, up to 10 MB of
indexes in memory, a tenth of a second to build them."""

_MIN_ANSWER = 5  # tokens: the longest context and what followed it


class Learning:
    """Earlier answers of one tokenizer. Belongs to one thread; other programs may use the same file.

    Nothing here may harm an answer: it costs no time before one has ended, and what goes wrong with
    the file is said once (``news``). Programs that learn at the same time lose nothing of each
    other's: each reads the file again, under a lock, before it writes.
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.past = PastAnswers()
        self._folder = folder
        self._path = folder / f"{fingerprint}{SUFFIX}"
        self._fingerprint = fingerprint
        self._answers: list[Ints] = []
        self._unsaved: list[Ints] = []
        self._save_due = self._index_due = False
        self._told: set[str] = set()
        self._news: list[str] = []
        try:
            self._answers = self._load()
        except OSError as error:
            self._tell(f"What drafting learned from earlier answers cannot be read: {_words(error)}.")
        self._was_kept = bool(self._answers)
        self.past.hold(self._answers)

    def add(self, tokens: Sequence[int]) -> None:
        """An answer has ended. It is only noted here: ``settle`` does the work."""
        if len(tokens) >= _MIN_ANSWER:
            self._unsaved = _bounded([*self._unsaved, np.array(tokens, np.int32)])
            self._save_due = True

    def settle(self) -> bool:
        """Do one piece of what is due, at most a tenth of a second or so. False when nothing was."""
        if self._save_due:
            self._save()
        elif self._index_due:
            self._index_due = False
            self.past.hold(self._answers)
        else:
            return False
        return True

    def check(self) -> None:
        """Forget what the person has had deleted meanwhile (answers_folder.forget_answers)."""
        if self._was_kept and not self._path.exists():
            self._answers, self._unsaved = [], []
            self._was_kept = self._save_due = self._index_due = False
            self.past.hold(())

    def news(self) -> tuple[str, ...]:
        """Lines for the person since the last look."""
        news, self._news = tuple(self._news), []
        return news

    def close(self) -> None:
        """Save what is not saved yet."""
        if self._save_due:
            self._save()

    # ---- inside

    def _load(self) -> list[Ints]:
        try:
            return self._read()
        except AnswerFileError:
            # Somebody else may be putting it right just now: only under the lock it is set aside.
            with lock_answers(self._folder):
                return self._read_or_set_aside()

    def _save(self) -> None:
        self._save_due = False
        self._index_due = True
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with lock_answers(self._folder):
                self.check()
                if not self._unsaved:
                    return
                answers = _merged(self._read_or_set_aside(), self._unsaved)
                write_atomically(self._path, encode(answers, self._fingerprint))
        except OSError as error:
            # They are good for this session all the same, and saved with the next if that can be.
            self._answers = _merged(self._answers, self._unsaved)
            if isinstance(error, Timeout):
                log.info("another program is saving answers")
            else:
                self._tell(f"What drafting learns from answers cannot be saved: {_words(error)}.")
        else:
            self._answers, self._unsaved = answers, []
            self._was_kept = True

    def _read_or_set_aside(self) -> list[Ints]:
        """What is kept, or what we know of it where it was damaged meanwhile. Call it with the lock.

        Raises OSError when the file can neither be read nor moved away.
        """
        try:
            return self._read()
        except AnswerFileError as error:
            aside = _free_name(self._path)
            self._path.rename(aside)
            self._tell(
                f"What drafting learned from earlier answers could not be used, {error}. "
                f"The file was set aside as {aside}."
            )
            return self._answers

    def _read(self) -> list[Ints]:
        """Raises AnswerFileError and OSError."""
        try:
            if self._path.stat().st_size > MAX_BYTES:
                raise AnswerFileError("it is too long")
            return decode(self._path.read_bytes(), self._fingerprint)
        except FileNotFoundError:
            return []

    def _tell(self, line: str) -> None:
        log.warning("%s", line)
        if line not in self._told:
            self._told.add(line)
            self._news.append(line)


def _merged(old: Sequence[Ints], new: Sequence[Ints]) -> list[Ints]:
    """All of them, oldest first and within bounds; one that was said again counts once, as new."""
    by_tokens: dict[bytes, Ints] = {}
    for answer in (*old, *new):
        key = answer.tobytes()
        by_tokens.pop(key, None)
        by_tokens[key] = answer
    return _bounded(list(by_tokens.values()))


def _bounded(answers: list[Ints]) -> list[Ints]:
    """The newest of them, ``MAX_TOKENS`` in all; of one that alone is longer, its end."""
    kept: list[Ints] = []
    room = MAX_TOKENS
    for answer in reversed(answers):
        if len(answer) > room and kept:
            break
        kept.append(answer[-MAX_TOKENS:])
        room -= len(kept[-1])
    return kept[::-1]


def _free_name(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return aside


def _words(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
