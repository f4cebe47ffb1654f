"""What goes wrong with a request, in the form that OpenAI's clients read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from app.protocol import FailureKind, RequestPart

ErrorType = Literal["invalid_request_error", "authentication_error", "rate_limit_error", "server_error"]

# What the worker says of a request, as a status.
_STATUS: dict[FailureKind, int] = {
    "bad_input": 400,
    "too_long": 400,
    "bad_model": 503,
    "no_model": 503,
    "out_of_memory": 503,
    "cancelled": 503,
    "worker_lost": 503,
    "internal": 500,
}


class ApiError(Exception):
    """``message`` is for the person; it holds no prompt, path or trace. ``param`` names the field."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        type: ErrorType = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.type = type
        self.param = param
        self.code = code
        self.retry_after_s = retry_after_s

    @property
    def headers(self) -> dict[str, str]:
        if self.status == 401:
            return {"WWW-Authenticate": "Bearer"}
        return {"Retry-After": str(self.retry_after_s)} if self.retry_after_s is not None else {}

    def body(self) -> dict[str, object]:
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}

    def event(self, number: int) -> dict[str, object]:
        """The same as an event of the responses API's streams."""
        told = {"code": self.code, "message": self.message, "param": self.param}
        return {"type": "error", "sequence_number": number, **told}


def engine_error(kind: FailureKind, message: str, about: RequestPart | None = None) -> ApiError:
    """What the engine could not do. ``param`` is the engine's own name of the part, see ``naming``."""
    status = _STATUS[kind]
    type: ErrorType = "invalid_request_error" if status < 500 else "server_error"
    # Clients that shorten a conversation by themselves look for OpenAI's own word.
    code = "context_length_exceeded" if kind == "too_long" else kind
    return ApiError(status, message, type=type, param=about, code=code)


@contextmanager
def naming(fields: Mapping[RequestPart, str]) -> Iterator[None]:
    """Errors in here name the request's ``fields``, by the part that the engine got of them."""
    try:
        yield
    except ApiError as error:
        error.param = next((name for part, name in fields.items() if part == error.param), error.param)
        raise


def unsupported(field: str, why: str) -> ApiError:
    return ApiError(400, f"{field}: {why}", param=field, code="unsupported_value")
