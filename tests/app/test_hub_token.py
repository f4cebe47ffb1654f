"""The Hub's token: for this person's eyes, and for huggingface_hub's."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from app import hub_token
from app.secret_file import SecretProblem

TOKEN = "hf_abcdefghijklmnopqrstuvwxyz0123"


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def test_a_token_is_kept_for_one_person_alone_and_never_shown_whole() -> None:
    assert hub_token.described() is None
    hub_token.save(f"  {TOKEN}\n")
    path = hub_token.token_path()
    assert path.read_text() == TOKEN
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert hub_token.described() == "••••0123"
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    hub_token.forget()
    assert hub_token.described() is None
    hub_token.forget()


def test_a_readable_file_becomes_private_when_the_token_is_replaced() -> None:
    path = hub_token.token_path()
    path.parent.mkdir(parents=True)
    path.write_text("hf_old")
    path.chmod(0o644)
    hub_token.save(TOKEN)
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_library_finds_it_there(private_home: Path) -> None:
    """In a process of its own: it looks for the place only once."""
    hub_token.save(TOKEN)
    code = "from huggingface_hub import get_token; print(get_token())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == TOKEN


@pytest.mark.parametrize("variables", [{}, {"HF_HOME": "/h"}, {"XDG_CACHE_HOME": "/c"}])
def test_the_place_is_the_librarys(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_TOKEN_PATH", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    code = "from huggingface_hub import constants; print(constants.HF_TOKEN_PATH)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert hub_token.token_path() == Path(told.stdout.strip())


@pytest.mark.parametrize("wrong", ["", "  ", "hf_a b", "hf_ä", "hf_a\nb", "hf_\u202eabc"])
def test_what_is_no_token_is_refused(wrong: str) -> None:
    with pytest.raises(SecretProblem):
        hub_token.save(wrong)
    assert not hub_token.token_path().exists()


def test_a_token_of_the_environment_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    hub_token.save(TOKEN)
    monkeypatch.setenv("HF_TOKEN", "hf_zzzzzzzzzzzzzzzzzzzz9876")
    assert hub_token.described() == "••••9876, from HF_TOKEN"


def test_a_problem_says_why_without_the_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("HF_TOKEN_PATH", str(blocked / "token"))
    with pytest.raises(SecretProblem) as caught:
        hub_token.save(TOKEN)
    assert TOKEN not in str(caught.value) and str(caught.value).endswith(".")


def test_a_short_token_shows_nothing_of_itself() -> None:
    hub_token.save("hf_short")
    assert hub_token.described() == "••••"
