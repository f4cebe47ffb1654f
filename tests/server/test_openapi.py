"""The server against its own OpenAPI document: whatever is sent, it is no fault of the server's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.schemas import OpenApiSchema

from app.worker.fake_script import FakeReply, FakeScript
from tests.server.local_server import LocalServer, toy_server

ROUTES = [
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/completions"),
    ("POST", "/v1/responses"),
    ("POST", "/v1/embeddings"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/{model_id}"),
    ("GET", "/health"),
    ("GET", "/metrics"),
]
EXAMPLES = 40


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    script = FakeScript(replies=(FakeReply(text="a few words", tokens_per_second=100_000.0),))
    with toy_server(tmp_path_factory.mktemp("openapi"), script) as running:
        running.openai().models.list()
        yield running


@pytest.fixture(scope="module")
def schema(server: LocalServer) -> OpenApiSchema:
    return schemathesis.openapi.from_dict(httpx.get(f"{server.url}/openapi.json").json())


def test_all_routes_are_in_the_document(schema: OpenApiSchema) -> None:
    told = {(operation.ok().method.upper(), operation.ok().path) for operation in schema.get_all_operations()}
    assert told == set(ROUTES)


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_nothing_that_fits_the_document_or_does_not_is_a_fault(
    server: LocalServer, schema: OpenApiSchema, method: str, path: str
) -> None:
    operation = schema[path][method]
    seen: set[int] = set()

    with httpx.Client(timeout=60) as client:
        # Nothing that is sent along with a GET could be wrong.
        for mode in list(schemathesis.GenerationMode)[: 2 if method == "POST" else 1]:

            @settings(
                max_examples=EXAMPLES,
                deadline=None,
                database=None,
                derandomize=True,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            def ask(case: schemathesis.Case) -> None:
                if (
                    isinstance(case.body, dict)
                    and "model" in case.body
                    and "toy" not in str(case.body["model"])
                ):
                    case.body["model"] = "toy"  # else most would end at a model that is not there
                answer = client.request(**_request(case, server.url))
                seen.add(answer.status_code)
                assert answer.status_code < 500, answer.text
                if answer.status_code >= 400:
                    assert answer.json()["error"]["message"]

            given(operation.as_strategy(generation_mode=mode))(ask)()
    assert seen


def _request(case: schemathesis.Case, url: str) -> dict[str, Any]:
    """As httpx sends it."""
    made = case.as_transport_kwargs(base_url=url)
    asked = {name: made[name] for name in ("method", "url", "json", "params", "headers") if name in made}
    if "data" in made:
        asked["content"] = made["data"]
    return asked
