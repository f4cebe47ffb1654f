"""What the fields of requests are made of: bounds that are looked at first, and nothing that is not known.

What is said of a million wrong entries would fill the memory and hold up everybody for a minute.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

MOST_FIELDS = 100
MOST_PAIRS = 64  # of metadata
MOST_DEPTH = 64  # of a JSON schema, and of the arguments of a call
MOST_VALUES = 10_000  # in one of these


def plain(value: dict[str, Any]) -> dict[str, Any]:
    """Raises ValueError for what cannot go on through every hand between here and the model."""
    waiting: list[tuple[Any, int]] = [(value, 1)]
    seen = 0
    while waiting:
        each, depth = waiting.pop()
        if depth > MOST_DEPTH:
            raise ValueError(f"is nested deeper than {MOST_DEPTH} levels")
        if isinstance(each, dict | list):
            inner = each.values() if isinstance(each, dict) else each
            seen += len(inner)
            if seen > MOST_VALUES:
                raise ValueError(f"holds more than {MOST_VALUES:,} values")
            waiting += [(one, depth + 1) for one in inner]
        elif isinstance(each, int) and not -(2**63) <= each < 2**63:
            raise ValueError("holds a number that is too large")
    return value


def text_only(content: Any) -> Any:
    """Raises ValueError for a message's content with other parts than text."""
    parts = content if isinstance(content, list) else ()
    if any(isinstance(part, dict) and part.get("type", "text") != "text" for part in parts):
        raise ValueError("this model takes text only")
    return content


def at_most(most: int) -> BeforeValidator:
    """Of a mapping: before any of its entries is looked at."""

    def check(value: Any) -> Any:
        if isinstance(value, dict) and len(value) > most:
            raise ValueError(f"holds more than {most:,} entries")
        return value

    return BeforeValidator(check)


def many(most: int, least: int = 0) -> Any:
    """Of a list: the first of its entries that is wrong is enough."""
    return Field(min_length=least, max_length=most, fail_fast=True)


FreeJson = Annotated[dict[str, Any], AfterValidator(plain)]
Metadata = Annotated[dict[str, str], at_most(MOST_PAIRS)]


class Body(BaseModel):
    """A JSON object of a request, or in one."""

    # A text is no number, and "yes" is not true.
    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _given(cls, body: Any) -> Any:
        """Null is the same as nothing, as it is for OpenAI."""
        if not isinstance(body, dict):
            return body
        if len(body) > MOST_FIELDS:
            raise ValueError("has too many fields")
        return {name: value for name, value in body.items() if value is not None}


def _names(body: type[Body]) -> set[str]:
    own = {field.alias or name for name, field in body.model_fields.items()}
    return own.union(*map(_names, body.__subclasses__()))


def field_names() -> frozenset[str]:
    """Of all bodies there are."""
    return frozenset(_names(Body))
