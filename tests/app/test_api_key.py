"""The local server's key: kept for one person alone."""

from __future__ import annotations

import stat
import sys

import pytest

from app import api_key
from app.secret_file import SecretProblem
from app.settings import Settings, SettingsFile
from app.settings_exchange import exported


def test_a_key_is_kept_apart_from_the_settings() -> None:
    assert api_key.kept() is None and api_key.described() is None
    key = api_key.new()
    assert len(key) > 32 and key != api_key.new()
    api_key.save(f" {key}\n")
    assert api_key.kept() == key
    if sys.platform != "win32":
        assert stat.S_IMODE(api_key.key_path().stat().st_mode) == 0o600
    assert api_key.described() == f"••••{key[-4:]}"
    file = SettingsFile()
    file.save(Settings())
    assert key.encode() not in file.path.read_bytes() + exported(Settings())
    api_key.forget()
    assert api_key.kept() is None
    api_key.forget()


@pytest.mark.parametrize("key", ["", "   ", "two words", "schlüssel", "a\x00b"])
def test_what_no_header_can_carry_is_no_key(key: str) -> None:
    with pytest.raises(SecretProblem):
        api_key.save(key)
    assert api_key.kept() is None
