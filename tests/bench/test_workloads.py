"""The fixed conversations: complete, distinct, and of a size that fits the starter's context."""

from __future__ import annotations

from app.bench.workloads import folder, load_workloads
from model_store.starter import starter_path
from native.model import Model

_NAMES = ("edit", "copy", "summarise", "chat", "json", "code", "refactor", "long")
_ANSWER, _MARKUP = 300, 60  # tokens of each answer, and of the template around a conversation's turn


def test_there_are_eight_workloads_with_one_measured_and_several_recorded_conversations() -> None:
    workloads = load_workloads()
    assert tuple(workload.name for workload in workloads) == _NAMES
    conversations = [c for workload in workloads for c in workload.conversations]
    assert 50 <= len(conversations) <= 60
    assert all(6 <= len(workload.conversations) <= 8 for workload in workloads)
    assert all(turn.strip() for c in conversations for turn in c.turns)
    for workload in workloads:
        assert workload.primary is workload.conversations[0]
        assert len({c.name for c in workload.conversations}) == len(workload.conversations)
    assert len({c.turns for c in conversations}) == len(conversations)
    refactor = next(w for w in workloads if w.name == "refactor")
    assert all(len(c.turns) > 1 for c in refactor.conversations) and len(refactor.primary.turns) >= 3


def test_documents_stand_before_the_question_and_none_lies_about_unused() -> None:
    long = next(w for w in load_workloads() if w.name == "long")
    files = {path for path in folder().iterdir() if path.name != "workloads.json"}
    used = {
        path
        for path in files
        for c in long.conversations
        if c.turns[0].startswith(path.read_text(encoding="utf-8"))
    }
    assert used == files and len(files) == len(long.conversations)


def test_every_conversation_and_its_answers_fit_the_starters_context() -> None:
    path = starter_path()
    assert path is not None
    with Model(path, vocab_only=True) as model:
        for workload in load_workloads():
            for conversation in workload.conversations:
                sizes = [len(model.tokenize(turn, parse_special=False)) for turn in conversation.turns]
                whole = sum(sizes) + len(sizes) * (_ANSWER + _MARKUP)
                assert whole <= workload.n_ctx <= 8192, (workload.name, conversation.name, whole)
                if workload.name == "long" and conversation is workload.primary:
                    assert 7_400 <= sizes[0] <= 7_800
