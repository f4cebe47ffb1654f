"""A home folder with something to see in every page: chats, models and figures, all of them scripted."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import gguf
import numpy as np

from app.chats.chat import Chat
from app.chats.conversation import Conversation
from app.chats.message import Message
from app.chats.store import ChatStore
from app.protocol import Chunk, Done, ModelReport, Piece
from app.speed_history import SpeedHistory
from app.worker.fake_model import cut
from drafting.statistics import Statistics
from tests.tiny_gguf import Tiny, add_tokenizer

TARGET, DRAFT = "Llama-3.2-3B-Q4_0", "Llama-3.2-1B-Q4_0"
QUESTION = (
    "Rename `rows` to `records` everywhere in this code and give back the whole code:\n\n"
    "```python\n"
    "def load(path):\n"
    "    rows = []\n"
    "    for line in open(path):\n"
    "        rows.append(line.strip().split(','))\n"
    "    if not rows:\n"
    "        raise ValueError('no rows in ' + path)\n"
    "    return rows\n"
    "```"
)
ANSWER = (
    "Here is the code with `rows` renamed to `records`:\n\n"
    "```python\n"
    "def load(path):\n"
    "    records = []\n"
    "    for line in open(path):\n"
    "        records.append(line.strip().split(','))\n"
    "    if not records:\n"
    "        raise ValueError('no records in ' + path)\n"
    "    return records\n"
    "```\n\n"
    "The text of the error changed as well: it named the variable. Two things that I left as they are:\n\n"
    "- The file is never closed. `with open(path) as file:` would see to that.\n"
    "- `split(',')` does not know quotes; the module `csv` does."
)
SECOND = "Now use `csv` and `with`, and say in a table what changed."
SECOND_ANSWER = (
    "```python\n"
    "import csv\n\n\n"
    "def load(path):\n"
    "    with open(path, newline='') as file:\n"
    "        records = list(csv.reader(file))\n"
    "    if not records:\n"
    "        raise ValueError('no records in ' + path)\n"
    "    return records\n"
    "```\n\n"
    "| before | now | why |\n"
    "|---|---|---|\n"
    "| `open(path)` | `with open(path, newline='')` | the file is closed, also after an error |\n"
    "| `split(',')` | `csv.reader(file)` | fields in quotes may hold commas |\n\n"
    "`newline=''` is what the documentation of `csv` asks for: line ends inside of quoted fields stay."
)
TITLES = (
    ("Rename rows to records", 0.1, "", False),
    ("Reise nach Lissabon: drei Tage mit Kindern", 0.3, "", True),
    ("Summary of the harbour log", 0.5, "Work", False),
    ("JSON list of fruits", 1.2, "", False),
    ("Why is the sky blue?", 1.5, "", False),
    ("Letter to the landlord about the boiler", 3.0, "", False),
    ("東京旅行の計画", 4.0, "", False),
    ("Unit tests for the CSV reader", 5.0, "Work", False),
    ("رسالة إلى المدير", 9.0, "", False),
    ("Names for a sailing boat", 12.0, "", False),
    ("Explain rejection sampling", 20.0, "Work", False),
    ("Sourdough that does not rise", 33.0, "", False),
    ("Regex for dates", 47.0, "", False),
)
_DAY_S = 24 * 3600.0
_PASS_S, _DRAFT_TOKEN_S = 0.052, 0.0085
_WHO = ("map-k", "suffix", "cache", "draft", "mod")


def passes(text: str, seed: int, start_s: float = 0.21, request_id: int = 0) -> Iterator[Chunk]:
    """An answer as a worker would send it, pass by pass; the same each time."""
    chance = random.Random(seed)
    tokens = cut(text)
    elapsed, at = start_s, 0
    plain = draft = 0.0
    while at < len(tokens):
        copies = "```" in text[: sum(map(len, tokens[:at]))]
        drafted = accepted = 0
        who: str | None = None
        if at and chance.random() < (0.7 if copies else 0.4):
            who = chance.choice(_WHO[:3] if copies else _WHO[2:])
            drafted = chance.randint(3, 7 if copies else 4)
            accepted = min(drafted, int(drafted * chance.betavariate(4, 1.5 if copies else 3) + 0.5))
        accepted = max(0, min(accepted, len(tokens) - at - 1))
        pieces = [Piece("".join(tokens[at : at + accepted]), who)] if accepted else []
        pieces.append(Piece(tokens[at + accepted]))
        at += accepted + 1
        took = _PASS_S + drafted * _DRAFT_TOKEN_S
        elapsed += took
        plain += _PASS_S * (accepted + 1)
        draft += took
        yield Chunk(
            request_id=request_id,
            pieces=tuple(pieces),
            tokens=accepted + 1,
            drafter=who,
            drafted=drafted,
            accepted=accepted,
            elapsed_s=elapsed,
            speedup=plain / draft,
        )


def statistics(chunks: list[Chunk], start_s: float = 0.21) -> Statistics:
    """What the worker would count over these passes."""
    stats = Statistics(
        prompt_tokens=96,
        completion_tokens=sum(chunk.tokens for chunk in chunks),
        first_pass_tokens=chunks[0].tokens,
        target_passes=len(chunks),
        prefill_s=start_s,
        decode_s=chunks[-1].elapsed_s - start_s,
    )
    stats.plain_s = stats.completion_tokens * _PASS_S
    stats.verify_s = stats.decode_s * 0.94
    stats.draft_s = stats.decode_s * 0.06
    for chunk in chunks:
        if chunk.drafter is not None:
            stats.record_draft(chunk.drafter, chunk.drafted, chunk.accepted)
            counts = stats.by_drafter[chunk.drafter]
            counts.pass_tokens += chunk.tokens
            counts.verify_s += _PASS_S + chunk.drafted * _DRAFT_TOKEN_S
            counts.plain_s += _PASS_S * chunk.tokens
    return stats


def answer(text: str, seed: int) -> Message:
    """One that is done."""
    chunks = list(passes(text, seed))
    message = Message(role="assistant", model=TARGET, seed=seed, stats=statistics(chunks))
    for chunk in chunks:
        for piece in chunk.pieces:
            message.append(piece)
    return message


def store(path: Path, now: float) -> None:
    """The chats; the first is the one that was shown last."""
    chats = ChatStore(path)
    # By the calendar, so that the list has the same groups at any time of the day.
    midnight = datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
    for number, (title, days, folder, pinned) in enumerate(TITLES):
        at = midnight + 1 - days if days < 1 else midnight - (days - 0.5) * _DAY_S
        chat = Chat(title=title, title_given=True, folder=folder, pinned=pinned, created_at=at, updated_at=at)
        said = Conversation(started_at=at)
        if number == 0:
            said.add_user(QUESTION)
            said.add(answer(ANSWER, 7))
            said.add_user(SECOND)
            said.add(answer(SECOND_ANSWER, 8))
        else:
            said.add_user(title)
            said.add(answer("It depends.", number))
        chat.leaf = said.messages[-1].id
        chats.add(chat, said)
        if number == 0:
            chats.last_open = chat.id
    if not chats.close():
        raise OSError(f"the chats could not be written to {path}")


def figures(path: Path, target: Path) -> None:
    """What earlier answers of the target with its drafter were like."""
    report = ModelReport(
        path=str(target),
        name=TARGET,
        architecture="llama",
        description="scripted",
        size_bytes=0,
        kv_bytes=0,
        n_vocab=512,
        n_ctx=4096,
        n_ctx_train=131_072,
        max_draft=64,
        n_threads=4,
        recurrent=False,
        hybrid=False,
        swa=False,
        draft_model_path=str(target.with_name(f"{DRAFT}.gguf")),
        drafters=(),
    )
    texts = {
        "repeated": (ANSWER, 0.8),
        "code": (SECOND_ANSWER.split("| before")[0], 0.1),
        "prose": ("The harbour lies behind a hill, and the wind comes from the west. " * 6, 0.0),
        "data": ('{"name": "apple", "colour": "red", "season": "autumn"},\n' * 12, 0.1),
    }
    history = SpeedHistory(lambda text: None, path)
    for seed, (text, repeated) in enumerate(texts.values()):
        for number in range(6):
            chunks = list(passes(text, 10 * seed + number))
            history.record(
                report,
                Done(
                    request_id=0,
                    finish_reason="stop",
                    text=text,
                    reasoning="",
                    cut_in_reasoning=False,
                    token_ids=(),
                    seed=number,
                    stats=statistics(chunks),
                    repeated=repeated,
                ),
            )


def model(path: Path, label: str, size: int) -> Path:
    """A file whose header tells of a model of ``label`` parameters and ``size`` bytes."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(path.stem)
    writer.add_size_label(label)
    writer.add_context_length(131_072)
    writer.add_embedding_length(64)
    writer.add_block_count(1)
    writer.add_feed_forward_length(128)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_vocab_size(512)
    add_tokenizer(writer, Tiny())
    kind = gguf.GGMLQuantizationType.Q4_0
    for name in ("token_embd.weight", "blk.0.ffn_up.weight"):
        values = gguf.quants.quantize(np.zeros((512, 64), dtype=np.float32), kind)
        writer.add_tensor(name, values, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.truncate(path, size)  # what was not written takes no room
    return path


def make_home(home: Path) -> Path:
    """Fill ``home``, which is SLIPSTREAM_HOME; returns the target's file."""
    models = home / "models"
    for folder in (home / "data", models):
        folder.mkdir(parents=True)
    store(home / "data" / "chats.db", time.time())
    model(models / f"{DRAFT}.gguf", "1B", 770_928_000)
    target = model(models / f"{TARGET}.gguf", "3B", 1_917_190_000)
    figures(home / "data" / "speed.sqlite3", target)
    return target
