"""What an offer lets a person choose from, as options of a card."""

from __future__ import annotations

from typing import TYPE_CHECKING

from model_store.fit import shown_bytes
from ui.bidi import visible
from ui.models.card_view import LOOK_UPS
from ui.models.options_panel import Option
from ui.models.words import FIT_WORDS, KIND_WORDS

if TYPE_CHECKING:
    from model_store.drafter_choice import DrafterChoice
    from model_store.offer import Offer

NONE = "none"


def quantisations(offer: Offer) -> list[Option]:
    return [
        Option(
            each.label,
            f"{each.label or each.files[0].name} · {shown_bytes(each.size)} · {FIT_WORDS[each.fit.verdict]}",
            each.fit.words,
            each.fit.verdict,
        )
        for each in offer.targets
    ]


def drafters(offer: Offer) -> list[Option]:
    options = [_drafter(each, offer) for each in offer.drafters]
    return [*options, Option(NONE, f"None: {LOOK_UPS}", "Downloads no drafter")]


def drafter_value(drafter: DrafterChoice | None) -> str:
    """What it is called when it is asked for."""
    if drafter is None:
        return NONE
    if drafter.inside:
        return "inside"
    return f"{drafter.files[0].repo}/{drafter.files[0].path}"


def _drafter(drafter: DrafterChoice, offer: Offer) -> Option:
    kind = KIND_WORDS[drafter.kind]
    if drafter.inside:
        return Option("inside", f"{kind} heads inside", "They are a part of the model")
    words = [kind, *([drafter.label] if drafter.label else []), shown_bytes(drafter.size)]
    if drafter.problem is not None:
        words.append("does not fit")
    elif drafter.checked:
        words.append("fits")
    help = drafter.problem or visible(drafter.name)
    return Option(drafter_value(drafter), " · ".join(words), visible(help), problem=drafter.problem)
