"""The Hub: what it says is understood, and what goes wrong is said in words that help."""

from __future__ import annotations

import hashlib
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from huggingface_hub import close_session

from model_store.hub import Hub, HubError, HubFile, RepoLink, parse_repo
from tests.model_store.local_hub import Fault, FaultKind, LocalHub

CONTENT = bytes(range(256)) * 1000


@pytest.fixture
def hub(local_hub: LocalHub) -> Hub:
    local_hub.add(
        "owner/model-GGUF", {"model-Q4_K_M.gguf": CONTENT, "sub/x y.gguf": CONTENT[1:], "a.md": b"hi"}
    )
    return Hub(local_hub.url)


def refusal(ask: Callable[[], object]) -> HubError:
    with pytest.raises(HubError) as caught:
        ask()
    assert caught.value.message == str(caught.value)
    return caught.value


def test_repository_with_its_files(hub: Hub, local_hub: LocalHub) -> None:
    repository = hub.repository("owner/model-GGUF")
    assert (repository.repo, repository.gated, repository.licence) == (
        "owner/model-GGUF",
        False,
        "apache-2.0",
    )
    assert repository.revision == local_hub.repositories["owner/model-GGUF"].sha
    assert repository.renamed_from is None
    model, other, note = repository.files
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    assert model == HubFile(
        "owner/model-GGUF", repository.revision, "model-Q4_K_M.gguf", len(CONTENT), sha256, sha256
    )
    assert (other.path, other.name) == ("sub/x y.gguf", "x y.gguf")
    assert (note.size, note.sha256, note.etag) == (2, None, "32f95c0d1244a78b2be1bab8de17906fabb2c4a8")


def test_repository_at_an_older_commit(hub: Hub, local_hub: LocalHub) -> None:
    old = hub.repository("owner/model-GGUF").revision
    local_hub.add("owner/model-GGUF", {"new.gguf": CONTENT})
    assert [file.path for file in hub.repository("owner/model-GGUF").files] == ["new.gguf"]
    assert hub.repository("owner/model-GGUF", old).revision == old
    assert len(hub.repository("owner/model-GGUF", old).files) == 3
    assert hub.read(hub.repository("owner/model-GGUF", old).files[0], 0, 4) == CONTENT[:4]


def test_renamed_repository_is_found_under_its_old_name(hub: Hub, local_hub: LocalHub) -> None:
    local_hub.renamed["owner/was"] = "owner/model-GGUF"
    repository = hub.repository("owner/was")
    assert (repository.repo, repository.renamed_from) == ("owner/model-GGUF", "owner/was")
    assert {file.repo for file in repository.files} == {"owner/model-GGUF"}


def test_file_that_is_gone_has_similar_ones(hub: Hub) -> None:
    """G10"""
    repository = hub.repository("owner/model-GGUF")
    assert repository.file("model-Q4_K_M.gguf").size == len(CONTENT)
    error = refusal(lambda: repository.file("model-Q4_0.gguf"))
    assert error.kind == "not_found"
    assert error.message == "model-Q4_0.gguf is gone from owner/model-GGUF; similar: model-Q4_K_M.gguf."


def test_search_finds_the_most_downloaded_first(local_hub: LocalHub) -> None:
    for name, downloads in (("a/qwen-small", 5), ("b/Qwen-large", 50), ("c/llama", 500)):
        local_hub.add(name, {"x.gguf": CONTENT}, downloads=downloads)
    local_hub.add("d/qwen-gated", {"x.gguf": CONTENT}, gated=frozenset(), likes=7)
    hits = Hub(local_hub.url).search(" qwen ")
    assert [hit.repo for hit in hits] == ["b/Qwen-large", "a/qwen-small", "d/qwen-gated"]
    assert [hit.gated for hit in hits] == [False, False, True]
    assert (hits[0].downloads, hits[2].likes) == (50, 7)
    assert hits[0].updated is not None
    assert hits[0].updated.year == 2026
    assert len(Hub(local_hub.url).search("qwen", limit=1)) == 1
    [request] = local_hub.requests("limit=1")
    assert "filter=gguf" in request.path


def test_part_of_a_file(hub: Hub, local_hub: LocalHub) -> None:
    model, other, note = hub.repository("owner/model-GGUF").files
    assert hub.read(model, 1000, 300) == CONTENT[1000:1300]
    assert hub.read(other, len(CONTENT) - 11, 300) == CONTENT[-10:]
    assert hub.read(model, len(CONTENT), 1) == b""
    assert hub.read(note, 0, 10) == b"hi"
    assert local_hub.sent("owner/model-GGUF", model.path) == 300


@pytest.mark.parametrize("kind", ["ignore_range", "wrong_part", "page", "early_close", "status_503"])
def test_wrong_part_of_a_file_is_refused(hub: Hub, local_hub: LocalHub, kind: FaultKind) -> None:
    file = hub.repository("owner/model-GGUF").files[0]
    local_hub.script(file.repo, file.path, Fault(kind))
    assert refusal(lambda: hub.read(file, 1000, 300)).kind in ("server", "offline")
    assert hub.read(file, 1000, 300) == CONTENT[1000:1300]


def test_token_is_sent_to_the_hub_and_nowhere_else(local_hub: LocalHub) -> None:
    local_hub.add("o/gated", {"x.gguf": CONTENT}, gated=frozenset({"hf_valid"}))
    file = Hub(local_hub.url).repository("o/gated").files[0]
    for token, status in ((None, 401), ("hf_valid_but_not_asked", 403)):
        error = refusal(lambda token=token: Hub(local_hub.url, token).read(file, 0, 1))  # type: ignore[misc]
        assert error.kind == "gated"
        assert error.link == f"{local_hub.url}/o/gated"
        assert error.link in error.message
        assert ("token field" in error.message) == (token is None)
        assert local_hub.seen[-1].status == status
    assert Hub(local_hub.url, "hf_valid").read(file, 0, 4) == CONTENT[:4]
    assert [seen.token for seen in local_hub.requests("/content/")] == [None]


def test_what_the_hub_refuses(hub: Hub, local_hub: LocalHub) -> None:
    def kind(ask: Callable[[], object], *words: str) -> str:
        error = refusal(ask)
        assert all(word in error.message for word in words), error.message
        return error.kind

    valid = Hub(local_hub.url, LocalHub.token)
    assert kind(lambda: hub.repository("no/such"), "no/such", "private", "token field") == "not_found"
    assert kind(lambda: valid.repository("no/such"), "no/such", "may not see it") == "not_found"
    assert kind(lambda: hub.repository("a b/c"), "owner/name") == "not_found"
    assert kind(lambda: hub.repository("../x"), "owner/name") == "not_found"
    assert kind(lambda: hub.repository("owner/model-GGUF", "gone"), "revision") == "not_found"
    wrong = Hub(local_hub.url, "expired")
    assert kind(lambda: wrong.repository("owner/model-GGUF"), "token field", "expired") == "unauthorised"
    local_hub.api_faults.append(Fault("status_429", seconds=40))
    error = refusal(lambda: hub.search("x"))
    assert (error.kind, error.retry_after) == ("rate_limited", 40.0)
    assert "in 40 seconds" in error.message
    local_hub.api_faults.append(Fault("status_503"))
    assert kind(lambda: hub.search("x"), "503", "later") == "server"
    local_hub.api_faults.append(Fault("redirect_loop"))
    assert kind(lambda: hub.repository("owner/model-GGUF"), "in circles", "new name") == "moved"


def test_sign_in_page_in_place_of_the_hub(hub: Hub, local_hub: LocalHub) -> None:
    """G06: a captive portal answers 200 with HTML."""
    local_hub.api_faults.extend([Fault("page"), Fault("page")])
    for ask in (lambda: hub.search("x"), lambda: hub.repository("owner/model-GGUF")):
        error = refusal(ask)
        assert error.kind == "offline"
        assert "sign-in page" in error.message


def test_name_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """G06: the search panel knows within 5 s that it is offline."""
    done = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **options: done.wait(60))
    started = time.monotonic()
    error = refusal(lambda: Hub("http://hub.invalid", within=0.3).search("x"))
    assert time.monotonic() - started < 30
    assert error.kind == "timeout"
    assert "online" in error.message
    done.set()
    assert Hub("http://hub.invalid")._within <= 5.0


def test_unknown_host_is_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*args: object, **options: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    error = refusal(lambda: Hub("http://hub.invalid").search("x"))
    assert (error.kind, "hub.invalid" in error.message) == ("offline", True)


def test_server_that_does_not_answer(local_hub: LocalHub) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert refusal(lambda: Hub(f"http://127.0.0.1:{port}", within=0.3).search("x")).kind == "timeout"


def test_proxy_that_cannot_be_reached(local_hub: LocalHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """G06"""
    monkeypatch.setenv("HTTPS_PROXY", "http://me:secret@127.0.0.1:9")
    close_session()
    error = refusal(lambda: Hub("https://hub.invalid").search("x"))
    assert error.kind == "proxy"
    assert "127.0.0.1:9" in error.message
    assert "HTTPS_PROXY" in error.message
    assert "secret" not in error.message


def test_offline_mode_asks_nobody(hub: Hub, local_hub: LocalHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """G06"""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for ask in (lambda: hub.search("x"), lambda: hub.repository("owner/model-GGUF")):
        error = refusal(ask)
        assert error.kind == "offline"
        assert "HF_HUB_OFFLINE" in error.message
    assert local_hub.seen == []


@pytest.fixture
def certificate(tmp_path: Path) -> Iterator[Path]:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    both = tmp_path / "certificate.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout - -out -"
    names = ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    both.write_bytes(subprocess.run([*command.split(), *names], check=True, capture_output=True).stdout)
    yield both
    close_session()


def test_certificate_that_is_not_trusted(
    local_hub: LocalHub, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G06: verification stays on, and the message names the setting that helps."""
    with LocalHub(certificate) as secure:
        secure.add("owner/model", {"x.gguf": CONTENT})
        error = refusal(lambda: Hub(secure.url).repository("owner/model"))
        assert error.kind == "certificate"
        assert "SSL_CERT_FILE" in error.message
        assert secure.seen == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        close_session()
        assert Hub(secure.url).repository("owner/model").files[0].size == len(CONTENT)


def test_endpoint_and_token_come_from_the_environment(
    local_hub: LocalHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    local_hub.add("owner/model", {"x.gguf": CONTENT}, private=True)
    monkeypatch.setenv("HF_ENDPOINT", f"{local_hub.url}/")
    assert refusal(lambda: Hub().repository("owner/model")).kind == "not_found"
    monkeypatch.setenv("HF_TOKEN", LocalHub.token)
    assert Hub().repository("owner/model").files
    assert not local_hub.requests("agent-harnesses")  # nobody is told what runs us


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("owner/model-GGUF", RepoLink("owner/model-GGUF")),
        (" owner/model.v1 ", RepoLink("owner/model.v1")),
        ("owner/model:Q4_K_M", RepoLink("owner/model", quantisation="Q4_K_M")),
        ("hf.co/owner/model:Q8_0", RepoLink("owner/model", quantisation="Q8_0")),
        ("https://huggingface.co/owner/model", RepoLink("owner/model")),
        ("huggingface.co/owner/model/", RepoLink("owner/model")),
        ("https://huggingface.co/owner/model/discussions/3", RepoLink("owner/model")),
        ("https://huggingface.co/owner/model/tree/v2", RepoLink("owner/model", "v2")),
        (
            "https://huggingface.co/owner/model/blob/main/MTP/x%20y.gguf?download=true#a",
            RepoLink("owner/model", "main", "MTP/x y.gguf"),
        ),
        (
            "https://huggingface.co/owner/model/resolve/refs/pr/4/x.gguf",
            RepoLink("owner/model", "refs/pr/4", "x.gguf"),
        ),
        ("https://huggingface.co/owner/model/tree/refs%2Fpr%2F4", RepoLink("owner/model", "refs/pr/4")),
        ("hf://owner/model@v2/x.gguf", RepoLink("owner/model", "v2", "x.gguf")),
        ("http://mirror:80/owner/model", RepoLink("owner/model")),
        ("gemma 4", None),
        ("gemma", None),
        ("", None),
        ("owner/model/x", None),
        ("../model", None),
        ("owner/..", None),
        ("https://huggingface.co/datasets/owner", None),
        ("https://example.org/owner/model", None),
        ("https://huggingface.co/", None),
    ],
)
def test_what_a_person_pastes(text: str, link: RepoLink | None) -> None:
    assert parse_repo(text, "http://mirror:80") == link
