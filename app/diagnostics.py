"""The report that a person may send with a problem: no word of a chat, no secret, no name of a folder.

What is shown of the settings is decided by type: numbers, switches and choices out of a list. Text is
only said to be there. Log lines come last, and are cleaned of what could be private.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Literal, get_args, get_origin

import msgspec
from msgspec import Struct

from app.protocol import Device, ModelReport
from app.settings import Settings

LEFT_OUT = "[left out]"
_PATHS = ("model", "draft_model", "models_folder", "lookup_cache")
_RUN = 12  # private text is looked for in runs of so many characters
_SHORTEST_PRIVATE = 4

_TOKENS = re.compile(
    r"\b(?:hf|sk|ghp|gho|glpat|xox[abp])[-_][A-Za-z0-9_-]{6,}"
    r"|(?i:\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,})"
    r"|(?i:\b(?:token|api[-_]?key|password|secret|authorization)\b\s*[=:]\s*)(?i:(?:bearer|basic)\s+)?\S+"
    r"|(?<=://)[^/\s@]+@"
    r"|\b[A-Za-z0-9+_-]{40,}={0,2}"
)
_QUOTED = re.compile(r"“[^”]*”?|\"(?:[^\"\\]|\\.)*\"?|(?<!\w)'(?:[^'\\]|\\.)*'?|‘[^’]*’?|`[^`]*`?")
# A record of ours, a line of llama.cpp's or the frame of a stack; anything else is text of unknown origin.
_RECORD = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ [\w.]+: ")
_ENGINE = re.compile(r"^[a-z][a-z0-9_]{2,40}: ")
_FRAME = re.compile(r'^\s+File "([^"]+)", line (\d+)(?: in|, in) (\S+)$')
_RAISED = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception|Warning|Interrupt|Exit|Lost|Refused))(?::|$)")
_KEPT = re.compile(r"^(?:Traceback \(most recent call last\):|Fatal Python error: [\w ]+|Current thread .*)$")


class Facts(Struct, frozen=True, kw_only=True):
    """What the report is made of. ``private`` is text that must not be in it: what is open in the chat,
    the system prompt, tokens. ``home`` is the person's folder; logs are name and lines, oldest first."""

    version: str
    python: str
    qt: str
    platform: str
    engine: str | None
    devices: tuple[Device, ...]
    model: ModelReport | None
    settings: Settings
    home: str
    logs: tuple[tuple[str, Sequence[str]], ...] = ()
    private: tuple[str, ...] = ()


def report(facts: Facts) -> str:
    """Plain text, ready to be pasted into an issue."""
    parts = [
        "Slipstream diagnostic report",
        _section(
            "Versions",
            (
                f"Slipstream {facts.version}",
                f"Python {facts.python}",
                f"Qt {facts.qt}",
                f"Engine {facts.engine or 'not started'}",
                facts.platform,
            ),
        ),
        _section("Devices", (_device(device) for device in facts.devices)),
        _section("Model", _model(facts.model)),
        _section("Settings", settings_lines(facts.settings)),
    ]
    clean = Cleaner(facts.home, facts.private)
    for name, lines in facts.logs:
        parts.append(_section(name, clean.lines(lines)))
    return "\n\n".join(parts) + "\n"


def settings_lines(settings: Settings) -> list[str]:
    """A line for each setting: its value where that can hold nothing private."""
    return list(_values(settings, ""))


class Cleaner:
    """Takes out of log lines what a person would not want to send."""

    def __init__(self, home: str, private: Iterable[str]) -> None:
        self._home = home.rstrip("/\\")
        self._short: list[str] = []
        self._runs: set[str] = set()
        for text in private:
            flat = _flat(text)
            if len(flat) < 2 * _RUN:
                if len(flat) >= _SHORTEST_PRIVATE:
                    self._short.append(flat)
            else:
                # Side by side here and at every place of a line: a common run of 2 * _RUN is found.
                self._runs.update(flat[at : at + _RUN] for at in range(0, len(flat) - _RUN + 1, _RUN))

    def lines(self, lines: Iterable[str]) -> list[str]:
        """Lines of a log as they may be sent; neighbours that were left out are one."""
        result: list[str] = []
        for line in lines:
            kept = self.line(line)
            if kept != LEFT_OUT or not result or result[-1] != LEFT_OUT:
                result.append(kept)
        return result

    def line(self, line: str) -> str:
        """One line, or ``LEFT_OUT``."""
        if frame := _FRAME.match(line):
            return f'  File "{self._place(frame[1])}", line {frame[2]}, in {frame[3]}'
        if raised := _RAISED.match(line):
            return raised[1]  # what an error says may quote anything
        if _KEPT.match(line) or not line.strip():
            return line
        if not (_RECORD.match(line) or _ENGINE.match(line)) or self._is_private(line):
            return LEFT_OUT
        if self._home:
            line = line.replace(self._home, "~")
        return _QUOTED.sub("“…”", _TOKENS.sub("[secret]", line))

    def _place(self, path: str) -> str:
        parts = PurePath(path.replace("\\", "/")).parts
        return "/".join(parts[-2:])

    def _is_private(self, line: str) -> bool:
        flat = _flat(line)
        if any(text in flat for text in self._short):
            return True
        return any(flat[at : at + _RUN] in self._runs for at in range(len(flat) - _RUN + 1))


def _flat(text: str) -> str:
    return " ".join(text.split()).casefold()


def _section(title: str, lines: Iterable[str]) -> str:
    return "\n".join([f"## {title}", *(list(lines) or ["none"])])


def _device(device: Device) -> str:
    memory = f", {device.free / 2**30:.1f} of {device.total / 2**30:.1f} GiB free" if device.total else ""
    return f"{device.name}: {device.description} ({device.kind}{memory})"


def _model(model: ModelReport | None) -> list[str]:
    if model is None:
        return []
    lines: list[str] = []
    for name in ModelReport.__struct_fields__:
        value: object = getattr(model, name)
        if name == "drafters":
            for drafter in model.drafters:
                lines.append(f"drafter {drafter.name}: {_QUOTED.sub('“…”', drafter.reason or 'ready')}")
        elif name in ("path", "draft_model_path"):
            lines.append(f"{name}: {_file_name(value)}")
        elif isinstance(value, bool | int | float) or name in ("architecture", "description"):
            lines.append(f"{name}: {value}")
    return lines


def _file_name(value: object) -> str:
    return PurePath(str(value).replace("\\", "/")).name if value else "none"


def _values(struct: Struct, where: str) -> Iterable[str]:
    for field in msgspec.structs.fields(struct):
        value: object = getattr(struct, field.name)
        name = f"{where}{field.name}"
        if isinstance(value, Struct):
            yield from _values(value, f"{name}.")
        elif field.name in _PATHS:
            yield f"{name}: {_file_name(value)}"
        else:
            yield f"{name}: {_shown(value, field.type)}"


def _shown(value: object, kind: object) -> str:
    if value is None or isinstance(value, bool | int | float):
        return str(value)
    choices = _choices(kind)
    if isinstance(value, str) and value in choices:
        return value
    if isinstance(value, tuple | list):
        if all(isinstance(one, bool | int | float) or one in choices for one in value):
            return ", ".join(str(one) for one in value) or "none"
        return f"{len(value)} entries"
    if isinstance(value, dict):
        return f"{len(value)} entries"
    return "set" if value else "not set"


def _choices(kind: object) -> frozenset[object]:
    """Every value that a Literal somewhere in an annotation allows."""
    if get_origin(kind) is Literal:
        return frozenset(get_args(kind))
    return frozenset().union(*(_choices(part) for part in get_args(kind)))
