"""Embedding models: vectors by the engine and through the server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import openai
import pytest

from app.protocol import Embed, Embedded, Failed
from app.settings import Settings
from tests.models.bert import write_bert
from tests.server.local_server import LocalServer
from tests.session import Session
from tests.tiny_gguf import Tiny, write_llama

pytestmark = pytest.mark.all_cores

TEXTS = ("the tide", "the sea", "a bicycle")


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    return write_bert(tmp_path / "bert.gguf")


def embed(session: Session, *texts: str) -> Embedded | Failed:
    request_id = session.client.ask(Embed(0, texts))
    event = session.until(lambda e: isinstance(e, Embedded | Failed) and e.request_id == request_id)
    assert isinstance(event, Embedded | Failed)
    return event


def vectors(session: Session, *texts: str) -> list[np.ndarray]:
    event = embed(session, *texts)
    assert isinstance(event, Embedded), event
    return [np.frombuffer(data, dtype="<f4") for data in event.vectors]


def test_a_text_has_one_vector_in_whatever_company(session: Session, bert: Path) -> None:
    report = session.load(bert)
    assert report.embeds and report.n_ctx == 64
    together = vectors(session, *TEXTS)
    for text, vector in zip(TEXTS, together, strict=True):
        assert vector.shape == (Tiny().n_embd,)
        assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)
        [alone] = vectors(session, text)
        np.testing.assert_allclose(alone, vector, atol=1e-6)
    assert not np.allclose(together[0], together[2], atol=1e-2)


def test_what_cannot_be_embedded_is_said(session: Session, bert: Path, tmp_path: Path) -> None:
    session.load(bert)
    for text in ("word " * 500, ""):
        event = embed(session, text)
        assert isinstance(event, Failed) and event.kind == "bad_input"
    refused = session.terminal(session.client.generate([], max_tokens=4))
    assert isinstance(refused, Failed) and "embedding model" in refused.message
    session.load(write_llama(tmp_path / "chat.gguf"))
    event = embed(session, "x")
    assert isinstance(event, Failed) and "writes text" in event.message


@pytest.fixture
def server(bert: Path) -> Iterator[LocalServer]:
    with LocalServer(bert, settings=Settings(learn=False)) as running:
        yield running


def test_openais_client_gets_the_vectors(server: LocalServer, session: Session, bert: Path) -> None:
    client = server.openai()
    session.load(bert)
    expected = vectors(session, *TEXTS)
    for encoding in ("float", "base64", openai.NOT_GIVEN):
        answer = client.embeddings.create(model="bert", input=list(TEXTS), encoding_format=encoding)  # type: ignore[arg-type]
        assert [each.index for each in answer.data] == [0, 1, 2] and answer.usage.prompt_tokens > 0
        for each, vector in zip(answer.data, expected, strict=True):
            told = each.embedding
            if isinstance(told, str):
                import base64

                told = np.frombuffer(base64.b64decode(told), dtype="<f4").tolist()
            np.testing.assert_allclose(told, vector, atol=1e-6)


def test_each_kind_of_model_is_for_one_thing(server: LocalServer, tmp_path: Path) -> None:
    client = server.openai()
    with pytest.raises(openai.BadRequestError, match="writes no text") as refused:
        client.chat.completions.create(model="bert", messages=[{"role": "user", "content": "x"}])
    assert refused.value.param == "model"
    with pytest.raises(openai.BadRequestError) as empty:
        client.embeddings.create(model="bert", input=["", "x"])
    assert empty.value.param == "input"
    chat = write_llama(tmp_path / "chat.gguf")
    with (
        LocalServer(chat, settings=Settings(learn=False)) as other,
        pytest.raises(openai.BadRequestError, match="need an embedding model"),
    ):
        other.openai().embeddings.create(model="chat", input="x")
