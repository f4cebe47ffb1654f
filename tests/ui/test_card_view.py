"""What cards say, told from what the store knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.store_problem import StoreProblem
from model_store.download_job import FileProgress, JobError, JobProgress, JobState
from model_store.fit import FreeMemory, MemoryNeed, fit
from model_store.hub import HubFile, HubHit
from model_store.library import ModelEntry
from ui.models.card_view import hit_view, job_action, job_trouble, job_words, ready_view
from ui.models.downloads import Getting, Wish
from ui.models.words import memory_words

GB = 10**9


def job(
    state: JobState = "active",
    received: int = GB,
    rate: float = 5e6,
    error: JobError | None = None,
    **more: object,
) -> JobProgress:
    phase = more.get("phase", "downloading")
    file = HubFile("o/n", "0" * 40, "m.gguf", 4 * GB, None, "")
    progress = FileProgress(file, Path("/m/m.gguf"), phase, received)  # type: ignore[arg-type]
    return JobProgress("1", "M", state, (progress,), rate, error=error, ours=bool(more.get("ours", True)))


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (job(), ("1.0 GB of 4.0 GB", "5 MB/s", "10 min left")),
        (job(rate=0), ("1.0 GB of 4.0 GB", "0 MB/s", "")),
        (job("paused"), ("1.0 GB of 4.0 GB", "paused", "")),
        (job("waiting"), ("1.0 GB of 4.0 GB", "waiting", "")),
        (job(phase="checking"), ("1.0 GB of 4.0 GB", "checking", "")),
        (job(phase="retrying"), ("1.0 GB of 4.0 GB", "trying again", "")),
        (job(phase="elsewhere"), ("1.0 GB of 4.0 GB", "another program", "")),
    ],
)
def test_how_far_a_download_is(shown: JobProgress, words: tuple[str, str, str]) -> None:
    assert job_words(shown) == words


def test_each_state_has_the_one_button_that_makes_sense() -> None:
    states: tuple[JobState, ...] = ("waiting", "active", "paused", "failed", "complete", "cancelled")
    actions = [job_action(job(state)) for state in states]
    assert actions == ["pause", "pause", "resume", "retry", "chat", None]
    assert job_action(job(ours=False)) is None


def test_error_says_what_happened_and_what_was_kept() -> None:
    failed = job("failed", error=JobError("gated", "o/n has a licence to accept first.", "https://h/o/n"))
    trouble = job_trouble(failed)
    assert trouble is not None
    assert trouble.what == "o/n has a licence to accept first."
    assert trouble.kept == "1.0 GB are kept: Retry goes on from there."
    assert (trouble.link, trouble.token) == ("https://h/o/n", True)
    nothing = job_trouble(job("failed", received=0, error=JobError("offline", "No network.")))
    assert nothing is not None
    assert (nothing.kept, nothing.token) == ("", False)
    assert job_trouble(job("paused", error=JobError("offline", "No network."))) is None


def test_numbers_behind_a_mark() -> None:
    target = MemoryNeed(weights=4 * GB, tables=80_000_000, cache=GB, states=0, compute=300_000_000)
    drafter = MemoryNeed(weights=300_000_000, tables=0, cache=0, states=0, compute=0)
    words = memory_words(target, drafter, fit(target.total + drafter.total, FreeMemory(12 * GB)))
    assert words.split("\n") == [
        "Needs about 5.7 GB; 12.0 GB are free.",
        "Weights: 4.0 GB",
        "KV cache: 1.0 GB",
        "Compute buffers: 300 MB",
        "Vocabulary and tables: 80 MB",
        "Drafter: 300 MB",
    ]


def test_names_from_the_hub_show_their_direction_marks() -> None:
    view = hit_view(HubHit("o/evil\u202efug", 0, 0, None, False), None, None, None, False)
    assert view.title == "evil⟨U+202E⟩fug"


def test_wish_that_fails_says_so_on_its_card() -> None:
    hit = HubHit("o/n", 5, 0, None, False)
    looking = hit_view(hit, None, Getting(Wish("o/n")), None, False)
    assert (looking.action, looking.working) == ("stop_looking", True)
    problem = StoreProblem("offline", "No network.")
    failed = hit_view(hit, None, Getting(Wish("o/n"), problem=problem), None, False)
    assert failed.action == "retry" and failed.trouble is not None
    assert failed.trouble.what == "No network."


def test_what_belongs_to_another_program_cannot_be_deleted_or_paired() -> None:
    entry = ModelEntry(Path("/theirs/m.gguf"), "m", "chat", GB, None, "llama", "llama", program="Ollama")
    view = ready_view(entry, None, is_starter=False, in_use=False, inside_folder=False)
    assert view.tag == "from Ollama"
    assert "delete" not in view.menu and "drafter" not in view.menu
    assert "unlist" in view.menu
    starter = ready_view(entry, None, is_starter=True, in_use=True, inside_folder=False)
    assert starter.tag == "in use, comes with Slipstream"
    assert "delete" not in starter.menu and "unlist" not in starter.menu
