"""Which links open, what is shown of them, and direction controls made visible (H05, H08)."""

import pytest

from ui.bidi import is_rtl, visible
from ui.links import judge


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://docs.python.org/3/", "docs.python.org"),
        ("HTTP://Example.ORG:8080/x", "example.org:8080"),
        ("mailto:someone@example.org", "someone@example.org"),
        ("https://a.example@b.example/", "b.example"),
        ("https://bücher.example/", "xn--bcher-kva.example"),
        ("file:///etc/hostname", None),
        ("file:///C:/Windows/System32/calc.exe", None),
        ("file://host.example/share/calc.exe", None),
        ("javascript:alert(1)", None),
        ("ms-settings://host.example/x", None),
        ("ms-settings:privacy", None),
        ("data:text/html,x", None),
        ("//host.example/path", None),
        ("https:///nohost", None),
        ("https://good.example\\@evil.example/", None),
        ("https://good.example/\nx", None),
        ("http://[::1", None),
        ("http://host:99999/", None),
        ("", None),
    ],
)
def test_target_is_the_real_host_or_nothing(url: str, target: str | None) -> None:
    assert judge(url).target == target


def test_what_stands_before_the_at_is_called_out() -> None:
    assert "a.example" in (judge("https://a.example@b.example/").warning or "")
    assert judge("https://b.example/").warning is None


def test_direction_controls_are_spelled_out() -> None:
    assert visible("invoice\u202egpj.exe") == "invoice⟨U+202E⟩gpj.exe"
    assert visible("plain שלום") == "plain שלום"


@pytest.mark.parametrize(
    ("text", "rtl"),
    [("שלום, x = 1!", True), ("x = שלום", False), ("123 مرحبا", True), ("", False), ("1, 2", False)],
)
def test_the_first_strong_character_decides(text: str, rtl: bool) -> None:
    assert is_rtl(text) is rtl
