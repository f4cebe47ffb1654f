"""What was loaded is named by its content, and a file that does not fit is named with the reason."""

from __future__ import annotations

from pathlib import Path

from app.protocol import LoadedFile
from app.speed_history import SpeedHistory
from model_store.check import read_model_file
from model_store.file_key import file_key
from model_store.fingerprint import tokenizer_fingerprint
from tests.models.eagle3 import write_eagle3
from tests.session import EXACT, Session
from tests.tiny_gguf import Tiny, write_llama


def _named(path: Path) -> LoadedFile:
    return LoadedFile(file_key(path), tokenizer_fingerprint(read_model_file(path)))


def test_the_report_names_both_files_by_their_content(session: Session, tmp_path: Path) -> None:
    target = write_llama(tmp_path / "target.gguf")
    draft = write_llama(tmp_path / "draft.gguf", Tiny(n_layer=1, seed=5))
    report = session.load(target, draft, EXACT)
    assert (report.file, report.draft_file) == (_named(target), _named(draft))
    assert report.file is not None and report.draft_file is not None
    assert report.file.key != report.draft_file.key
    assert report.file.tokenizer == report.draft_file.tokenizer
    assert session.load(target, options=EXACT).draft_file is None


def test_the_speed_history_keeps_what_was_loaded_and_not_what_lies_there_now(
    session: Session, tmp_path: Path
) -> None:
    target = write_llama(tmp_path / "target.gguf")
    report = session.load(target, options=EXACT)
    done = session.ask("hello", max_tokens=8)
    key = file_key(target)
    target.write_bytes(b"another file")
    told: list[str] = []
    history = SpeedHistory(told.append, tmp_path / "speed.sqlite3")
    history.record(report, done)
    assert [row.target.key for row in history.read()] == [key] and told == []


def test_labels_follow_what_the_worker_loaded(session: Session, tmp_path: Path) -> None:
    """Case B05: choose, switch the target, switch back, delete the file."""
    target = write_llama(tmp_path / "target.gguf")
    other = write_llama(tmp_path / "other.gguf", Tiny(swap=(139, 300)))
    draft = write_llama(tmp_path / "draft.gguf", Tiny(n_layer=1, seed=5))
    assert session.load(target, draft, EXACT).draft_model_path == str(draft)
    switched = session.load(other, draft, EXACT)
    assert switched.draft_model_path is None and switched.draft_file is None
    assert any("token 139" in notice for notice in switched.notices)
    assert session.load(target, draft, EXACT).draft_model_path == str(draft)
    draft.unlink()
    gone = session.load(target, draft, EXACT)
    assert gone.draft_model_path is None
    assert any("draft.gguf was not found" in notice for notice in gone.notices)
    off = {drafter.name for drafter in gone.drafters if drafter.reason is not None}
    assert "draft" in off and "cache" not in off
    assert session.ask("hello", max_tokens=4).stats.completion_tokens == 4


def test_a_head_chosen_as_a_draft_model_is_named(session: Session, tmp_path: Path) -> None:
    target = write_llama(tmp_path / "target.gguf", Tiny(n_layer=4))
    head = write_eagle3(tmp_path / "head.gguf", target_hidden_size=128)
    report = session.load(target, head, EXACT)
    reasons = [drafter.reason or "" for drafter in report.drafters]
    assert any("head.gguf" in reason for reason in reasons)
    assert session.ask("hello", max_tokens=4).stats.completion_tokens == 4
