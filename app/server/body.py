"""A request's body on its way in: JSON to the letter, and what is wrong with it named by its field."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from app.server.errors import ApiError
from app.server.fields import field_names

_LONGEST_NAME = 64


class _StrictRequest(Request):
    async def json(self) -> Any:
        """Raises json.JSONDecodeError."""
        try:
            return msgspec.json.decode(await self.body())
        except (msgspec.DecodeError, RecursionError) as error:
            raise json.JSONDecodeError("this is not JSON", "", 0) from error


class StrictRoute(APIRoute):
    """Python's own reader takes more than JSON: NaN, half a character, any encoding of Unicode."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handler(_StrictRequest(request.scope, request.receive))

        return strict


def invalid(error: RequestValidationError) -> ApiError:
    """The first thing that is wrong, without a word of what was sent but a field's name."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return ApiError(400, "The body is not JSON.", code="invalid_json")
    _, *parts = first["loc"]  # the body
    unknown = parts.pop() if first["type"] == "extra_forbidden" else None
    place: list[str] = []
    known = field_names()
    for part in parts:
        if isinstance(part, str) and part not in known:
            break  # one of several types that a field may have, or a key of the sender's own
        place.append(str(part))
    if unknown is not None:
        field = ".".join([*place, str(unknown)[:_LONGEST_NAME]])
        return ApiError(400, f"{field}: this field is not known.", param=field, code="unknown_field")
    field = ".".join(place)
    message = str(first["msg"]).removeprefix("Value error, ")
    return ApiError(400, f"{field or 'The body'}: {message}.", param=field or None, code="invalid_value")
