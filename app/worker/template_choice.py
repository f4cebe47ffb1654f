"""Which chat template a model's prompts are written with."""

from __future__ import annotations

from app.chat_template import ChatTemplate, TemplateError, builtin_source
from native.model import Model

FALLBACK = "chatml"


def choose_template(model: Model, chosen: str | None) -> tuple[ChatTemplate, tuple[str, ...]]:
    """The template that a person chose, else the model's own, else ChatML; and notices for the person."""
    special = {
        "bos_token": model.token_text(model.bos) if model.bos is not None else "",
        "eos_token": model.token_text(model.eos) if model.eos is not None else "",
    }
    notices: tuple[str, ...] = ()
    if chosen is not None:
        try:
            return ChatTemplate(builtin_source(chosen), **special), notices
        except TemplateError as error:
            notices = (f"The chosen chat template cannot be used: {error}.",)
    problem = "it has none"
    if own := model.chat_template:
        try:
            return ChatTemplate(own, **special), notices
        except TemplateError as error:
            problem = f"it cannot be read ({error})"
    fallback = (
        f"No usable chat template in this model, {problem}: using ChatML. "
        "Another one can be chosen in the settings."
    )
    return ChatTemplate(builtin_source(FALLBACK), **special), (*notices, fallback)
