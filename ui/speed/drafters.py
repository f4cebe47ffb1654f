"""Name, colour and help of each drafter: one table for the strip, the settings and the answers."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from app.protocol import DRAFTERS

Pattern = Literal["solid", "dotted", "dashed", "dash-dot", "dash-dot-dot", "wave", "double"]


class DrafterLook(Struct, frozen=True):
    """``light`` and ``dark`` are the colours on the two themes; ``pattern`` is how its text is
    underlined, so that colour is not needed: one for each n-gram drafter, one for all neural ones,
    of which a chat has one at most."""

    name: str
    help: str
    light: str
    dark: str
    pattern: Pattern = "double"

    def colour(self, dark: bool) -> str:
        return self.dark if dark else self.light


_LOOKS = {
    "cache": DrafterLook(
        "cache",
        "Guesses what followed the same few words earlier in this chat.",
        "#0B6E99",
        "#4FB3DB",
        "solid",
    ),
    "simple": DrafterLook(
        "simple",
        "Finds the last words again and goes on as their newest place does.",
        "#7A5C00",
        "#D6B94A",
        "dotted",
    ),
    "map-k": DrafterLook(
        "map-k",
        "Finds the last words again, often enough to be trusted, and goes on.",
        "#8A4B08",
        "#E5A352",
        "dashed",
    ),
    "mod": DrafterLook(
        "mod", "Remembers passages of all chats in a small shared table.", "#6A3FA0", "#B795EB", "wave"
    ),
    "map-k4v": DrafterLook(
        "map-k4v",
        "Weighs up to four continuations of a passage and takes a clear winner.",
        "#9A3412",
        "#F0916A",
        "dash-dot",
    ),
    "suffix": DrafterLook(
        "suffix",
        "Follows the longest earlier match, of whatever length.",
        "#9D2463",
        "#EE8FBE",
        "dash-dot-dot",
    ),
    "draft": DrafterLook(
        "draft", "A small model guesses ahead when the others have nothing to say.", "#2E6B34", "#7CC487"
    ),
    "eagle3": DrafterLook(
        "eagle3", "A small head guesses on from what the model itself is thinking.", "#00645A", "#5CCBBE"
    ),
    "mtp": DrafterLook(
        "mtp", "Heads trained with the model say the next words but one.", "#7A4B00", "#D9B36A"
    ),
    "dflash": DrafterLook(
        "dflash",
        "Fills in a whole block of words at once, from what the model itself is thinking.",
        "#1F4FA8",
        "#8FB3F2",
    ),
    "dspark": DrafterLook(
        "dspark",
        "Fills in a block of words at once, each in view of the one before it.",
        "#8C1D18",
        "#F29B94",
    ),
}
_UNKNOWN = DrafterLook("", "A drafter that this version does not know.", "#6B6B66", "#9A9A94")


def look(name: str) -> DrafterLook:
    """What is known of ``name``; a drafter of a newer worker gets a neutral look."""
    return _LOOKS.get(name) or DrafterLook(name, _UNKNOWN.help, _UNKNOWN.light, _UNKNOWN.dark)


def looks() -> tuple[DrafterLook, ...]:
    """All known drafters, in the order in which they may speak."""
    return tuple(look(name) for name in DRAFTERS)
