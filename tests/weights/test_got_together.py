"""From Get to the chat: the drafter that came with a model drafts for it, and nothing had to be chosen."""

from __future__ import annotations

import queue
from pathlib import Path

from model_store.download_job import JobProgress
from model_store.hub import Hub
from model_store.store import Event, Store
from tests.model_store.local_hub import LocalHub
from tests.models.eagle3 import write_eagle3
from tests.session import EXACT, Session
from tests.tiny_gguf import Tiny, write_llama

REPO = "someone/Model-GGUF"


def test_what_was_got_together_is_loaded_together(session: Session, tmp_path: Path) -> None:
    sizes = Tiny(n_layer=4)
    target = write_llama(tmp_path / "target.gguf", sizes)
    head = write_eagle3(tmp_path / "head.gguf", sizes)
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    with LocalHub() as hub:
        hub.add(REPO, {"Model-Q4_0.gguf": target, "eagle3-Model.gguf": head})
        store = Store(
            tmp_path / "models",
            cache=None,
            imported=tmp_path / "imported.json",
            catalog=tmp_path / "none.json",
            own_catalog=tmp_path / "own.json",
            on_event=events.put,
            hub=Hub(hub.url),
        )
        try:
            job = store.get(store.offer(REPO))
            while job.state != "complete":
                event = events.get(timeout=30)
                job = event if isinstance(event, JobProgress) else job
                assert job.state != "failed", job.error
            entry = store.find("Model-Q4_0")
        finally:
            store.close()
    report = session.load(entry.path, options=EXACT)
    assert report.draft_model_path == str(job.files[1].path)
    done = session.ask("hello", links=("eagle3",), max_tokens=16)
    assert done.stats.drafted > 0
    job.files[1].path.unlink()
    alone = session.load(entry.path, options=EXACT)
    assert alone.draft_model_path is None
    assert alone.notices == ()
