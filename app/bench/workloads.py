"""The fixed conversations that are measured and recorded: assets/bench/workloads.json."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from app import paths


class Conversation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person says, turn by turn; ``document`` names a text that stands before the first turn."""

    name: str
    turns: tuple[str, ...]
    document: str | None = None


class Workload(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kind of text. The first conversation is the measured one; traces are recorded of all.

    ``n_ctx`` is the context that prompt and answer need with any common tokenizer.
    """

    name: str
    n_ctx: int
    conversations: tuple[Conversation, ...]

    @property
    def primary(self) -> Conversation:
        return self.conversations[0]


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    workloads: tuple[Workload, ...]


def folder() -> Path:
    return paths.assets_dir() / "bench"


def load_workloads() -> tuple[Workload, ...]:
    """All workloads, with each document already in its conversation's first turn."""
    file = msgspec.json.decode((folder() / "workloads.json").read_bytes(), type=_File)
    return tuple(
        msgspec.structs.replace(workload, conversations=tuple(map(_whole, workload.conversations)))
        for workload in file.workloads
    )


def _whole(conversation: Conversation) -> Conversation:
    if conversation.document is None:
        return conversation
    text = (folder() / conversation.document).read_text(encoding="utf-8")
    first, *others = conversation.turns
    return msgspec.structs.replace(conversation, turns=(f"{text}\n{first}", *others), document=None)
