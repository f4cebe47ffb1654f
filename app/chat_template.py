"""Chat templates: Jinja2 in an immutable sandbox, with caps on time and output.

A template comes with a downloaded file, so it is treated as hostile code; it runs in the worker.
"""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.sandbox
from jinja2.exceptions import SecurityError

from app import paths

MAX_SOURCE_CHARS = 1_000_000
MAX_OUTPUT_CHARS = 16_000_000
MAX_SECONDS = 2.0
MAX_MEMORY_BYTES = 512 * 1024 * 1024
_AGAIN_S = 0.5
_MOST_AGAIN = 20
_TOOLS = re.compile(r"\btools\b")
_MAX_REPEAT = 1_000_000
_STATM = Path("/proc/self/statm")  # Linux: this process's size in pages
_MAX_INT_BITS = 10_000  # no signal reaches Python inside a product of two huge numbers


_T = TypeVar("_T")


class TemplateError(Exception):
    """The template cannot be used or refuses these messages; the text says why in its own words."""


class _Deadline(BaseException):
    """Raised inside a template that runs too long."""


class _Generation(jinja2.ext.Extension):
    """``{% generation %}`` marks the assistant's text for training; here it only holds its body."""

    tags = {"generation"}  # noqa: RUF012  declared so by jinja2

    def parse(self, parser: jinja2.parser.Parser) -> jinja2.nodes.Node | list[jinja2.nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Environment(jinja2.sandbox.ImmutableSandboxedEnvironment):
    """The sandbox, with the operators that can make gigabytes out of one line watched too."""

    intercepted_binops = frozenset(("*", "**"))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" and (abs(left) > 1000 or abs(right) > 100):
            raise SecurityError("a power this large")
        if operator == "*":
            if isinstance(left, int) and isinstance(right, int):
                if left.bit_length() + right.bit_length() > _MAX_INT_BITS:
                    raise SecurityError("a product this large")
                return left * right
            for sized, count in ((left, right), (right, left)):
                if hasattr(sized, "__len__") and len(sized) * count > _MAX_REPEAT:
                    raise SecurityError("a repetition this long")
        return super().call_binop(context, operator, left, right)


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Plain JSON as Hugging Face's templates expect it, without jinja2's HTML escapes."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _environment() -> _Environment:
    environment = _Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        extensions=["jinja2.ext.loopcontrols", _Generation],
    )
    environment.globals.pop("lipsum")
    environment.globals["raise_exception"] = _raise_exception
    environment.filters["tojson"] = _tojson
    return environment


_ENVIRONMENT = _environment()


class ChatTemplate:
    """A compiled template."""

    def __init__(self, source: str, *, bos_token: str = "", eos_token: str = "") -> None:
        """Raises TemplateError with the line for a template that cannot be parsed."""
        if len(source) > MAX_SOURCE_CHARS:
            raise TemplateError(f"the chat template is {len(source):,} characters long")
        self.source = source
        self._tokens = {"bos_token": bos_token, "eos_token": eos_token}
        try:
            # What is constant in it is computed here already.
            with _memory_cap(MAX_MEMORY_BYTES):
                self._template = _within(MAX_SECONDS, lambda: _ENVIRONMENT.from_string(source))
        except jinja2.TemplateSyntaxError as error:
            raise TemplateError(f"line {error.lineno}: {error.message}") from error
        except _Deadline:
            raise TemplateError(f"reading it took over {MAX_SECONDS:g} seconds") from None
        except (RecursionError, SyntaxError) as error:
            raise TemplateError("it is nested too deep to be read") from error
        except MemoryError as error:  # Python's parser says so of depth as well
            raise TemplateError("it is nested too deep to be read, or wants too much memory") from error
        except Exception as error:  # such as a number of 5,000 digits
            raise TemplateError(f"{type(error).__name__}: {error}") from error

    @property
    def knows_tools(self) -> bool:
        """It tells the model of functions itself."""
        return _TOOLS.search(self.source) is not None

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        now: datetime.datetime,
        add_generation_prompt: bool = True,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> str:
        """The prompt's text. ``now`` is what ``strftime_now`` sees; ``tools`` are as in OpenAI's API.
        Raises TemplateError."""

        def rendered() -> list[str]:
            pieces: list[str] = []
            size = 0
            for piece in self._template.generate(
                messages=[dict(m) for m in messages],
                add_generation_prompt=add_generation_prompt,
                strftime_now=now.strftime,
                tools=[dict(tool) for tool in tools] if tools else None,
                documents=None,
                **self._tokens,
            ):
                size += len(piece)
                if size > MAX_OUTPUT_CHARS:
                    raise TemplateError("the chat template writes without end")
                pieces.append(piece)
            return pieces

        try:
            with _memory_cap(MAX_MEMORY_BYTES):
                pieces = _within(MAX_SECONDS, rendered)
        except TemplateError:
            raise
        except _Deadline:
            raise TemplateError(f"the chat template ran for over {MAX_SECONDS:.0f} seconds") from None
        except jinja2.TemplateError as error:
            raise TemplateError(error.message or str(error)) from error
        except MemoryError:
            raise TemplateError("the chat template wants too much memory") from None
        except Exception as error:  # a template is foreign code: whatever it does wrong is its own
            raise TemplateError(f"{type(error).__name__}: {error}") from error
        return "".join(pieces)


def _within(seconds: float, work: Callable[[], _T]) -> _T:
    """Do ``work``, and raise _Deadline in the middle of it once ``seconds`` have passed, even of an
    endless loop."""
    thread = ctypes.c_ulong(threading.get_ident())
    lock = threading.Lock()
    over = threading.Event()

    def watch() -> None:
        # Where Python ignores what is raised, as in a finaliser, it has to be raised again.
        for wait in (seconds, *[_AGAIN_S] * _MOST_AGAIN):
            if over.wait(wait):
                return
            with lock:
                if not over.is_set():
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(_Deadline))

    watcher = threading.Thread(target=watch, name="template deadline", daemon=True)
    # Not a context manager: it could strike on the way in or out of one, and would go on striking.
    try:
        watcher.start()
        return work()
    finally:
        while True:
            try:
                with lock:
                    over.set()
                # One that was set but not yet raised must not surface in whatever runs next.
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, None)
                break
            except _Deadline:  # it strikes here
                continue
        watcher.join()


@contextlib.contextmanager
def _memory_cap(more: int) -> Iterator[None]:
    """Let this process grow by ``more`` bytes at most, where the system can hold it to that.

    There are too many ways to make a gigabyte out of one line to watch each of them.
    """
    if not _STATM.exists():
        yield
        return
    import resource

    used = int(_STATM.read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    cap = used + more if soft == resource.RLIM_INFINITY else min(soft, used + more)
    resource.setrlimit(resource.RLIMIT_AS, (cap, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def builtin_names() -> list[str]:
    """Names of the templates that ship with the program."""
    return sorted(file.stem for file in (paths.assets_dir() / "chat_templates").glob("*.jinja"))


def builtin_source(name: str) -> str:
    """Raises TemplateError for a name that is not one of ``builtin_names``."""
    if name not in builtin_names():
        raise TemplateError(f"there is no chat template called {name!r}")
    return (paths.assets_dir() / "chat_templates" / f"{name}.jinja").read_text(encoding="utf-8")
