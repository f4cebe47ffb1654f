"""What llama-server drafted, pass by pass: the format of the files beside this one."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

SETTINGS = ((1, 0.0), (3, 0.0), (8, 0.5))  # n_max, p_min
PASSES = 50


class Pass(Struct, frozen=True, array_like=True):
    """The tokens drafted for one target pass, and how many of them were accepted."""

    drafted: tuple[int, ...]
    accepted: int


class Answer(Struct, frozen=True):
    """``passes`` are the first that had a draft; ``drafted`` and ``accepted`` count the whole answer."""

    name: str
    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    passes: tuple[Pass, ...]
    drafted: int
    accepted: int


class Recording(Struct, frozen=True, kw_only=True):
    """Greedy answers of at most ``max_tokens`` tokens, on one CPU thread."""

    server: str
    command: str
    max_tokens: int
    answers: tuple[Answer, ...]


def path_of(n_max: int, p_min: float) -> Path:
    return Path(__file__).parent / f"eagle3-n{n_max}-p{p_min:g}.json"


def load(n_max: int, p_min: float) -> Recording:
    return msgspec.json.decode(path_of(n_max, p_min).read_bytes(), type=Recording)
