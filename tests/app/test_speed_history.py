"""The history of speed: sums, weights, several writers, and every way a file can be bad."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from app.protocol import Done, ModelReport
from app.speed_history import (
    HALF_LIFE,
    BackgroundHistory,
    Figures,
    KindHistory,
    SpeedHistory,
    SpeedHistoryError,
)
from drafting.statistics import DrafterCounts, Statistics

PROSE = "It rained in the morning, and the boats stayed in the harbour until noon."
CODE = "```python\nprint(1)\n```"


def model(path: str = "/m/toy.gguf", draft: str | None = None, size: int = 7) -> ModelReport:
    return ModelReport(
        path=path,
        name=Path(path).stem,
        architecture="llama",
        description="toy",
        size_bytes=size,
        kv_bytes=1,
        n_vocab=1,
        n_ctx=1,
        n_ctx_train=1,
        max_draft=8,
        n_threads=1,
        recurrent=False,
        hybrid=False,
        swa=False,
        draft_model_path=draft,
        drafters=(),
    )


def done(text: str = PROSE, *, accepted: int = 6, repeated: float = 0.0, reasoning: str = "") -> Done:
    """Ten tokens after the first, in five passes of which three verified eight drafted tokens."""
    stats = Statistics(
        prompt_tokens=30,
        completion_tokens=11,
        first_pass_tokens=1,
        target_passes=6,
        prefill_s=9.0,
        decode_s=2.0,
        draft_s=0.25,
        verify_s=1.5,
        plain_s=2.75,
        by_drafter={"suffix": DrafterCounts(3, 8, accepted, [3], [3], 9, 0.25, 1.0, 0.25, 2.25)},
    )
    return Done(
        request_id=1,
        finish_reason="stop",
        text=text,
        reasoning=reasoning,
        cut_in_reasoning=False,
        token_ids=(),
        seed=1,
        stats=stats,
        repeated=repeated,
    )


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "speed.sqlite3"


@pytest.fixture
def history(path: Path, told: list[str]) -> SpeedHistory:
    return SpeedHistory(told.append, path, clock=lambda: 1e9)


def only(history: SpeedHistory) -> KindHistory:
    rows = history.read()
    assert len(rows) == 1
    return rows[0]


def test_one_answer(history: SpeedHistory, path: Path, told: list[str]) -> None:
    assert history.read() == [] and not path.exists()
    history.record(model(draft="/m/small.gguf"), done())
    row = only(history)
    assert (row.target.name, row.drafter and row.drafter.name, row.kind) == ("toy", "small", "prose")
    ever = row.whole.ever
    assert ever == row.whole.lately and row.whole.last_used == 1e9
    assert (ever.answers, ever.passes, ever.tokens) == (1, 5, 10)
    assert (ever.proposals, ever.drafted, ever.accepted) == (3, 8, 6)
    assert (ever.draft_s, ever.verify_s, ever.rest_s, ever.plain_s) == (0.25, 1.5, 0.25, 2.75)
    assert ever.tokens_per_second == 5.0 and ever.speedup == 1.5
    assert ever.acceptance_rate == 0.75 and ever.tokens_per_pass == 2.0
    assert list(row.links) == ["suffix"]
    link = row.links["suffix"].ever
    assert (link.answers, link.passes, link.tokens, link.drafted, link.accepted) == (1, 3, 9, 8, 6)
    assert link.tokens_per_second == 6.0 and link.speedup == pytest.approx(2.5 / 1.5)
    assert told == []


def test_what_was_lately_counts_most(history: SpeedHistory) -> None:
    for _ in range(HALF_LIFE):
        history.record(model(), done(accepted=0))
    for _ in range(HALF_LIFE):
        history.record(model(), done(accepted=8))
    whole, link = only(history).whole, only(history).links["suffix"]
    assert whole.ever.answers == 2 * HALF_LIFE
    for spans in (whole, link):
        assert spans.ever.acceptance_rate == pytest.approx(0.5)
        # one half-life later the first half of the answers weighs half of the second
        assert spans.lately.acceptance_rate == pytest.approx(2 / 3)
    history.record(model(), done(CODE, accepted=0))  # another kind changes nothing
    again = next(row for row in history.read() if row.kind == "prose")
    assert again.whole == whole


def test_pairs_and_kinds_are_kept_apart(history: SpeedHistory) -> None:
    history.record(model(), done())
    history.record(model(draft="/m/small.gguf"), done())
    history.record(model("/m/other.gguf", size=8), done())
    for text, repeated in ((CODE, 0.0), ("- a\n- b", 0.0), (CODE, 0.9)):
        history.record(model(), done(text, repeated=repeated))
    found = [(row.target.name, row.drafter.name if row.drafter else None, row.kind) for row in history.read()]
    assert found == [
        ("other", None, "prose"),
        ("toy", None, "prose"),
        ("toy", None, "code"),
        ("toy", None, "data"),
        ("toy", None, "repeated"),
        ("toy", "small", "prose"),
    ]


def test_a_moved_model_goes_on_under_its_new_name(history: SpeedHistory, tmp_path: Path) -> None:
    file = tmp_path / "one.gguf"
    file.write_bytes(b"GGUF" * 100)
    history.record(model(str(file)), done())
    history.record(model(str(file.rename(tmp_path / "two.gguf"))), done())
    row = only(history)
    assert row.target.name == "two" and row.whole.ever.answers == 2


def test_thoughts_alone_have_a_kind_too(history: SpeedHistory) -> None:
    history.record(model(), done("", reasoning=CODE))
    assert only(history).kind == "code"


def test_an_answer_without_decoding_is_not_counted(history: SpeedHistory) -> None:
    one = done()
    one.stats.completion_tokens = 1
    history.record(model(), one)
    assert history.read() == []


def test_no_word_of_the_chat_is_stored(history: SpeedHistory, path: Path) -> None:
    history.record(model(), done("zanzibar " * 50, reasoning="quicksilver " * 50))
    content = path.read_bytes()
    assert b"zanzibar" not in content and b"quicksilver" not in content and b"toy" in content


def test_forgetting(history: SpeedHistory, path: Path) -> None:
    for _ in range(3):
        history.record(model(draft="/m/small.gguf"), done())
    history.record(model("/m/other.gguf", size=8), done())
    toy = next(row.target for row in history.read() if row.target.name == "toy")
    assert history.forget([toy.key]) == 3
    assert [row.target.name for row in history.read()] == ["other"]
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT name FROM models").fetchall() == [("other",)]
    db.close()
    assert history.forget() == 1 and history.read() == [] and history.forget() == 0


def test_nothing_to_forget_makes_no_file(history: SpeedHistory, path: Path) -> None:
    assert history.forget() == 0 and not path.exists()


_WRITER = """
import sys
from pathlib import Path
from app.speed_history import SpeedHistory
from tests.app.test_speed_history import done, model
history = SpeedHistory(lambda text: sys.exit(text), Path(sys.argv[1]))
for _ in range(25):
    history.record(model(), done())
"""


def test_several_processes_write_at_once(history: SpeedHistory, path: Path, told: list[str]) -> None:
    """From the very first answer on: they also race for making the file."""
    writers = [subprocess.Popen([sys.executable, "-c", _WRITER, str(path)]) for _ in range(3)]
    assert [writer.wait(timeout=100) for writer in writers] == [0, 0, 0]
    assert only(history).whole.ever.answers == 75 and told == []


def _zeros(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[:4096] = bytes(4096)
    path.write_bytes(content)


def _foreign(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE chats (text)")
    db.close()


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b"no database at all " * 300),
        lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
        _zeros,
        _foreign,
    ],
)
def test_a_damaged_file_is_set_aside(
    history: SpeedHistory, path: Path, told: list[str], damage: Callable[[Path], object]
) -> None:
    history.record(model(), done())
    damage(path)
    bad = path.read_bytes()
    Path(f"{path}-journal").write_bytes(b"left behind")
    history.record(model(), done())
    assert only(history).whole.ever.answers == 1
    aside = path.with_name("speed.damaged.sqlite3")
    assert aside.read_bytes() == bad and not Path(f"{path}-journal").exists()
    assert len(told) == 1 and aside.name in told[0]


def test_an_empty_file_is_a_new_one(history: SpeedHistory, path: Path, told: list[str]) -> None:
    path.touch()
    assert history.read() == []
    history.record(model(), done())
    assert only(history).whole.ever.answers == 1 and told == []


def test_a_newer_versions_file_is_left_alone(history: SpeedHistory, path: Path, told: list[str]) -> None:
    history.record(model(), done())
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    before = path.read_bytes()
    history.record(model(), done())
    assert path.read_bytes() == before and len(told) == 1 and "newer" in told[0]
    with pytest.raises(SpeedHistoryError, match="newer"):
        history.read()


@pytest.mark.parametrize("where", ["folder", "nowhere", "/proc/self/speed.sqlite3"])
def test_a_place_that_takes_no_file(tmp_path: Path, told: list[str], where: str) -> None:
    """A read-only folder among them: nobody can make a file in that of a process."""
    if where == "folder":
        (tmp_path / where).mkdir()
    elif where.startswith("/proc") and not Path("/proc/self").exists():
        pytest.skip("no /proc here")
    path = tmp_path / where / "x" if where == "nowhere" else tmp_path / where
    history = SpeedHistory(told.append, path)
    history.record(model(), done())
    history.record(model(), done())
    assert len(told) == 1 and "not kept" in told[0] and told[0].count("\n") == 0


def test_a_data_folder_that_is_a_file(private_home: Path, told: list[str]) -> None:
    private_home.mkdir()
    (private_home / "data").touch()
    history = SpeedHistory(told.append)
    history.record(model(), done())
    assert len(told) == 1
    with pytest.raises(SpeedHistoryError):
        history.read()


def test_who_waits_too_long_for_another_gives_up(
    path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.speed_history._BUSY_S", 0.05)
    history = SpeedHistory(told.append, path)
    history.record(model(), done())
    with sqlite3.connect(path, isolation_level=None) as db:
        db.execute("BEGIN EXCLUSIVE")
        history.record(model(), done())
    db.close()
    assert len(told) == 1 and "another program" in told[0]
    history.record(model(), done())
    assert only(history).whole.ever.answers == 2


def test_in_the_background(history: SpeedHistory) -> None:
    threads: list[threading.Thread] = []

    class Watched(SpeedHistory):
        def record(self, model: ModelReport, done: Done) -> None:
            threads.append(threading.current_thread())
            history.record(model, done)

    background = BackgroundHistory(Watched(lambda text: None))
    for _ in range(5):
        background.record(model(), done())
    background.close()
    assert only(history).whole.ever.answers == 5
    assert len(set(threads)) == 1 and threads[0] is not threading.current_thread()
    background.record(model(), done())  # too late, and no error
    assert only(history).whole.ever.answers == 5


def test_who_reads_in_the_background_sees_what_was_recorded_before(history: SpeedHistory) -> None:
    background = BackgroundHistory(history)
    assert background.read().result(20) == []
    for _ in range(3):
        background.record(model(), done())
    (row,) = background.read().result(20)
    assert row.whole.ever.answers == 3
    assert background.forget(["another"]).result(20) == 0
    assert background.forget([row.target.key]).result(20) == 3
    assert background.read().result(20) == []
    background.close()
    assert background.read().cancelled() and background.forget().cancelled()


def test_an_error_in_the_background_reaches_who_asked(path: Path, history: SpeedHistory) -> None:
    history.record(model(), done())
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    background = BackgroundHistory(history)
    with pytest.raises(SpeedHistoryError, match="newer version"):
        background.read().result(20)
    background.close()


def test_figures_add_up() -> None:
    one, two = Figures(answers=1, tokens=10, verify_s=0.5), Figures(answers=2, tokens=30, verify_s=0.5)
    total = one + two
    assert (total.answers, total.tokens_per_second) == (3, 40.0)
    assert sum((one, two), start=Figures()) == total
