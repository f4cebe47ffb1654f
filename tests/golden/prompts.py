"""The fifty golden prompts: prompts.toml."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

Kind = Literal["chat", "code", "summary", "json", "non-english", "emoji"]


class Prompt(Struct, frozen=True, forbid_unknown_fields=True):
    """One user message; ``passages`` names texts that stand before it."""

    name: str
    kind: Kind
    text: str
    passages: tuple[str, ...] = ()


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    passages: dict[str, str]
    prompts: tuple[Prompt, ...]
    long_answer: str


def _read() -> _File:
    return msgspec.toml.decode((Path(__file__).parent / "prompts.toml").read_bytes(), type=_File)


def load_prompts() -> tuple[Prompt, ...]:
    """All prompts, with the passages already in their text; kinds take turns, so that the first few
    are a fair sample."""
    file = _read()
    by_kind: dict[Kind, list[Prompt]] = {}
    for prompt in file.prompts:
        text = "\n".join([*(file.passages[name] for name in prompt.passages), prompt.text])
        by_kind.setdefault(prompt.kind, []).append(msgspec.structs.replace(prompt, text=text))
    longest = max(map(len, by_kind.values()))
    return tuple(prompts[i] for i in range(longest) for prompts in by_kind.values() if i < len(prompts))


def long_answer() -> str:
    """The prompt of the sampled runs: most answers to it go on until they are cut."""
    return _read().long_answer
