"""What the diagnostic report says, and what must never be in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.diagnostics import LEFT_OUT, Cleaner, Facts, report, settings_lines
from app.protocol import Device, DrafterReport, ModelReport
from app.settings import Settings

PROMPT = "You are the keeper of the north lighthouse and answer in verse."
SAID = "my daughter's birthday is on the ninth of May, and nobody may know"
TOKEN = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345"


def facts(**changes: object) -> Facts:
    model = ModelReport(
        path="/home/ada/secret project/toy.gguf",
        name="toy",
        architecture="llama",
        description="llama 135M Q4_1",
        size_bytes=98_000_000,
        kv_bytes=1024,
        n_vocab=512,
        n_ctx=4096,
        n_ctx_train=8192,
        max_draft=64,
        n_threads=2,
        recurrent=False,
        hybrid=False,
        swa=False,
        draft_model_path=None,
        drafters=(DrafterReport("cache"), DrafterReport("eagle3", "hidden size 2048, target has 576")),
    )
    values: dict[str, object] = {
        "version": "0.1.0",
        "python": "3.11.7",
        "qt": "6.11.3",
        "platform": "Linux x86_64",
        "engine": "llama.cpp b9999",
        "devices": (Device("CPU", "some processor", "cpu", 2**30, 2**33),),
        "model": model,
        "settings": Settings(),
        "home": "/home/ada",
    }
    return Facts(**{**values, **changes})  # type: ignore[arg-type]


def test_it_says_what_helps() -> None:
    text = report(facts(settings=Settings(temperature=0.25, model="/home/ada/x/toy.gguf")))
    for line in (
        "Slipstream 0.1.0",
        "Engine llama.cpp b9999",
        "CPU: some processor (cpu, 1.0 of 8.0 GiB free)",
        "path: toy.gguf",
        "description: llama 135M Q4_1",
        "drafter eagle3: hidden size 2048, target has 576",
        "temperature: 0.25",
        "draft_mode: auto",
        "model: toy.gguf",
        "parameters.simple.n: ",
    ):
        assert line in text, line
    assert "secret project" not in text


def test_text_in_settings_is_only_said_to_be_there() -> None:
    lines = settings_lines(
        Settings(system_prompt=PROMPT, chat_templates={"/home/ada/diary.gguf": "chatml"}, theme="dark")
    )
    assert "system_prompt: set" in lines
    assert "chat_templates: 1 entries" in lines
    assert "theme: dark" in lines
    assert not any("lighthouse" in line or "diary" in line for line in lines)


@pytest.mark.parametrize("private", [PROMPT, SAID, TOKEN, "Ilse"])
@pytest.mark.parametrize(
    "line",
    [
        "2026-01-01 10:00:00,000 ERROR app.worker.engine: could not render {}",
        "2026-01-01 10:00:00,000 ERROR app.worker.engine: could not render   {}  now",
        "llama_decode: {}",
        "{}",
        "KeyError: {}",
        "KeyError: '{}'",
        "    return answer({})",
    ],
)
def test_what_is_private_never_gets_out(private: str, line: str) -> None:
    part = private[: len(private) * 2 // 3] if len(private) > 36 else private
    log = [line.format(private), line.format(part)]
    text = report(facts(logs=(("Program log", log),), private=(PROMPT, SAID, TOKEN, "Ilse")))
    assert part not in text


@given(st.text(min_size=24, max_size=200), st.text(max_size=40), st.text(max_size=40))
def test_no_log_line_carries_a_private_text(private: str, before: str, after: str) -> None:
    line = f"2026-01-01 10:00:00,000 INFO app.x: {before}{private}{after}"
    if len(" ".join(private.split())) >= 24:
        assert Cleaner("", (private,)).line(line) == LEFT_OUT


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        (
            "2026-01-01 10:00:00,123 WARNING app.settings: the setting n_ctx has its default: Expected `int`",
            "2026-01-01 10:00:00,123 WARNING app.settings: the setting n_ctx has its default: Expected “…”",
        ),
        ("llama_model_load: loaded /home/ada/m/toy.gguf", "llama_model_load: loaded ~/m/toy.gguf"),
        (
            '  File "/home/ada/x/app/engine.py", line 3, in step',
            '  File "app/engine.py", line 3, in step',
        ),
        ("ValueError: my secret", "ValueError"),
        ("Traceback (most recent call last):", "Traceback (most recent call last):"),
        ("    raise ValueError(text)", LEFT_OUT),
        (f"get_file: Authorization: Bearer {TOKEN[3:]}", "get_file: [secret]"),
        (f"get_file: {TOKEN} was refused", "get_file: [secret] was refused"),
        ("get_file: https://ada:pw@example.org/x", "get_file: https://[secret]example.org/x"),
        ("anything that a model or a person may have said", LEFT_OUT),
    ],
)
def test_log_lines_are_cleaned(line: str, kept: str) -> None:
    assert Cleaner("/home/ada", ()).line(line) == kept


def test_neighbours_that_were_left_out_are_one() -> None:
    assert Cleaner("", ()).lines(["One thing", "another thing", "load_x: fine", "a third"]) == [
        LEFT_OUT,
        "load_x: fine",
        LEFT_OUT,
    ]
