"""``--spec``: which drafters draft, in which order, each with its parameters."""

from __future__ import annotations

import argparse

import msgspec
from msgspec import Struct

from app.declaration import Declared, declarations
from app.protocol import DRAFTERS, NEURAL, DrafterName, DraftingParams
from drafting.parameters import LinkParameters

_NAMES: dict[str, tuple[DrafterName, ...]] = {name: (name,) for name in DRAFTERS}
_NAMES["neural"] = NEURAL  # whichever fits the file


def parse_spec(text: str) -> DraftingParams:
    """``auto``, ``off``, or a list such as ``simple:n=8,m=24,map-k``. Raises
    argparse.ArgumentTypeError."""
    if text in ("auto", "off"):
        return DraftingParams(links=DRAFTERS if text == "auto" else ())
    given: dict[DrafterName, dict[str, str]] = {}
    links: tuple[DrafterName, ...] = ()
    for part in text.split(","):
        for place, word in enumerate(part.split(":")):
            name, equals, value = (piece.strip() for piece in word.partition("="))
            if not equals and not place:
                links = _drafters(name)
            elif not links or not equals:
                raise argparse.ArgumentTypeError(f"{word!r} is no drafter and no NAME=NUMBER behind one")
            for link in links:
                values = given.setdefault(link, {})
                if equals:
                    values[name.replace("-", "_")] = value
    parameters = {name: _parameters(name, values) for name, values in given.items()}
    return DraftingParams(
        mode="manual", links=tuple(given), parameters=msgspec.convert(parameters, LinkParameters)
    )


def spec_help() -> str:
    """The drafters and their parameters, a line each, and how to write them."""
    defaults = LinkParameters()
    lines = ["drafters for --spec, and their parameters with their defaults:"]
    for name in DRAFTERS:
        values = msgspec.to_builtins(defaults.of(name)).items()
        lines.append(f"  {name:9}" + "  ".join(f"{key}={value:g}" for key, value in values))
    lines += [
        "",
        "Write a drafter's parameters behind a colon; what is not named keeps its default:",
        "  --spec cache,simple:n=8,m=24,map-k    the first of the three that has something to say speaks",
        "  --spec neural:n_max=8,p_min=0.6       the drafter file that is loaded, of whichever kind, alone,",
        "                                        up to 8 tokens while it is sure",
    ]
    return "\n".join(lines)


def _drafters(name: str) -> tuple[DrafterName, ...]:
    if name not in _NAMES:
        choice = ", ".join(("auto", "off", *_NAMES))
        raise argparse.ArgumentTypeError(f"unknown drafter {name!r} (choose from {choice})")
    return _NAMES[name]


def _parameters(link: DrafterName, values: dict[str, str]) -> Struct:
    kind = type(LinkParameters().of(link))
    known = declarations(kind)
    numbers = {}
    for name, value in values.items():
        if name not in known:
            raise argparse.ArgumentTypeError(f"{link} has no parameter {name!r} (it has {', '.join(known)})")
        number = _number(known[name], value)
        if number is None:
            raise argparse.ArgumentTypeError(f"{link}: {_wanted(known[name])}, not {value!r}")
        numbers[name] = number
    try:
        return msgspec.convert(numbers, kind)
    except msgspec.ValidationError as error:
        raise argparse.ArgumentTypeError(f"{link}: {error}") from None


def _number(words: Declared, text: str) -> float | None:
    """None for what is no number, or out of range."""
    try:
        number = int(text) if words.is_whole else float(text)
    except ValueError:
        return None
    assert words.minimum is not None and words.maximum is not None
    return number if words.minimum <= number <= words.maximum else None


def _wanted(words: Declared) -> str:
    kind = "a whole number" if words.is_whole else "a number"
    return f"{words.name} is {kind} from {words.minimum:g} to {words.maximum:g}"
