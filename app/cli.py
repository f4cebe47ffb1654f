"""The command line: ``slipstream`` opens the window, ``chat`` answers one prompt, ``bench`` measures."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from app.commands.spec import parse_spec, spec_help
from app.protocol import DRAFTERS, FailureKind

USAGE_ERROR = 2
INTERRUPTED = 130  # what shells expect after Ctrl+C
_API_KEY = "what clients must send; or SLIPSTREAM_API_KEY (default: the one kept in the settings, if any)"
_DRAFT_MODEL = "a drafter: a small GGUF with the same vocabulary, or an EAGLE-3, MTP, DFlash or DSpark file"


def failure_status(kind: FailureKind) -> int:
    """The exit status for a request that failed: whether the input was to blame."""
    return USAGE_ERROR if kind in ("bad_input", "too_long", "bad_model") else 1


class UsageError(Exception):
    """Bad arguments or input, in one line."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line; the usage is there for the asking."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE_ERROR, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the return value is the exit status (0 done, 1 failed, 2 bad usage)."""
    if getattr(sys, "frozen", False):
        import multiprocessing

        multiprocessing.freeze_support()  # a bundle starts itself for its processes
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        if options.command == "chat":
            from app.commands.chat import run_chat

            return run_chat(options)
        if options.command == "bench":
            from app.commands.bench import run_bench

            return run_bench(options)
        if options.command == "replay":
            from app.commands.replay import run_replay

            return run_replay(options)
        if options.command == "stats":
            from app.commands.stats import run_stats

            return run_stats(options)
        if options.command == "models":
            from app.commands.models import run_models

            return run_models(options)
        if options.command == "serve":
            from app.commands.serve import serve_command

            return serve_command(options)
        if options.command == "forget":
            from app.commands.forget import run_forget

            return run_forget()
        if options.command == "desktop-entry":
            from app.commands.desktop import run_desktop_entry

            return run_desktop_entry(options)
    except UsageError as error:
        print(f"slipstream: {error}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:  # before the answer began, or while it was being cleared away
        return INTERRUPTED
    return _open_window()


def _open_window() -> int:
    """The window is the layer above this one: it is started by name, never imported."""
    if not has_display():
        print(
            "slipstream: there is no display to open a window on. "
            'To chat here, run: slipstream chat "your message"',
            file=sys.stderr,
        )
        return 1
    try:
        runpy.run_module("ui", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0


def has_display() -> bool:
    """Whether a window could be shown: always, but on a Linux or BSD without X or Wayland."""
    if sys.platform in ("win32", "darwin") or os.environ.get("QT_QPA_PLATFORM"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="slipstream",
        description="Chat with a language model on this machine. Without a command: open the window.",
    )
    commands = parser.add_subparsers(dest="command", metavar="command")
    opening = commands.add_parser(
        "open",
        help="open the window with a model file or a chat; an open window comes to the front",
        description="Open the window, or bring the one that is open to the front, and show something in it.",
    )
    opening.add_argument(
        "what", nargs="?", help="a GGUF file, or a link to a chat such as slipstream:chat/123"
    )
    chat = commands.add_parser(
        "chat",
        help="answer one prompt on the terminal",
        description="Stream the answer to one prompt and print what drafting did for it.",
        epilog=spec_help(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    chat.add_argument("prompt", help='what to say to the model; "-" reads it from standard input')
    chat.add_argument("-m", "--model", metavar="MODEL", help="a GGUF file (default: the starter model)")
    chat.add_argument(
        "--draft-model",
        type=Path,
        metavar="FILE",
        help=_DRAFT_MODEL,
    )
    chat.add_argument(
        "--spec",
        type=parse_spec,
        default="auto",
        metavar="auto|off|LIST",
        help="who drafts: auto (the default) drafts where it pays; in a list, such as "
        "simple:n=8,m=24,map-k, the first that has something to say speaks",
    )
    chat.add_argument("--draft-max", type=_count, metavar="N", help="longest draft in tokens")
    chat.add_argument(
        "--draft-floor",
        type=_decimal(0.0, 1.0),
        metavar="RATE",
        help="pause a drafter while less than this share of what it drafts is accepted; 0 never does",
    )
    chat.add_argument("--temp", type=_decimal(0.0, 5.0), metavar="T", help="temperature; 0 is greedy")
    chat.add_argument("--seed", type=_seed, metavar="N", help="makes the answer reproducible")
    _add_sampling(chat)
    chat.add_argument(
        "--exact", action="store_true", help="the same text with and without drafting, bit by bit"
    )
    chat.add_argument("--max-tokens", type=_count, metavar="N", help="longest answer in tokens")
    chat.add_argument("--threads", type=_count, metavar="N", help="CPU threads")
    chat.add_argument(
        "--no-learn", action="store_true", help="neither use nor keep what drafting learns from answers"
    )
    chat.add_argument(
        "--lookup-cache-static",
        type=Path,
        metavar="FILE",
        help="a file of llama-lookup-create's to draft from",
    )
    chat.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    _add_bench(commands.add_parser)
    replay = commands.add_parser(
        "replay",
        help="judge drafting on recorded answers, without a model",
        description="Run every way of drafting over recorded answers, with the cost curves of three "
        "machines: what it would have brought, in plain passes, and what an oracle would have reached.",
    )
    replay.add_argument("traces", nargs="*", type=Path, metavar="TRACE", help="recordings (default: ours)")
    replay.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    stats = commands.add_parser(
        "stats",
        help="how fast your models were lately, and what drafting brought",
        description="Print speed, speed-up and acceptance by model pair, kind of text and drafter, "
        "counted from your own answers in the window and from slipstream chat.",
    )
    stats.add_argument("--model", metavar="NAME", help="only this model, by the name the table shows")
    stats.add_argument("--forget", action="store_true", help="drop what was counted")
    stats.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    _add_models(commands.add_parser)
    _add_serve(commands.add_parser)
    commands.add_parser(
        "forget",
        help="delete what drafting has learned from your answers",
        description="Delete the token ids of earlier answers that drafting learned from, for all models.",
    )
    entry = commands.add_parser(
        "desktop-entry",
        help="put Slipstream into the menu of your desktop, or take it out",
        description="Put Slipstream into the menu of your Linux desktop, for you alone, or take it out. "
        "Without an option: say whether it is there.",
    )
    which = entry.add_mutually_exclusive_group()
    which.add_argument("--install", action="store_true", help="write the entry and its icon")
    which.add_argument("--remove", action="store_true", help="delete them")
    return parser


def _add_sampling(chat: argparse.ArgumentParser) -> None:
    """Penalties, bias and grammar, by llama.cpp's names."""
    for name, least, most, what in (
        ("repeat", 0.01, 10.0, "makes what was said lately less likely; 1 does nothing"),
        ("frequency", -2.0, 2.0, "the same, more so each time it was said; 0 does nothing"),
        ("presence", -2.0, 2.0, "the same, once it was said at all; 0 does nothing"),
    ):
        chat.add_argument(f"--{name}-penalty", type=_decimal(least, most), metavar="P", help=what)
    chat.add_argument(
        "--logit-bias",
        type=_logit_bias,
        action="append",
        metavar="ID=BIAS",
        help="makes a token more or less likely, -100 to 100; -100 bans it; may be repeated",
    )
    grammar = chat.add_mutually_exclusive_group()
    grammar.add_argument(
        "--grammar-file", type=Path, metavar="FILE", help="hold the answer to a grammar in llama.cpp's GBNF"
    )
    grammar.add_argument(
        "--json-schema",
        metavar="FILE|TEXT",
        help="hold the answer to JSON that fits a schema; '{}' is any object",
    )


def _add_bench(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    bench = add_parser(
        "bench",
        help="measure what drafting brings on this machine",
        description="Measure every way of drafting on fixed workloads, interleaved, and print the medians.",
    )
    bench.add_argument(
        "-m", "--model", nargs="+", metavar="MODEL", help="GGUF files (default: the starter model)"
    )
    bench.add_argument(
        "--draft-model",
        type=Path,
        metavar="FILE",
        help=_DRAFT_MODEL,
    )
    bench.add_argument(
        "--workloads", type=_names, metavar="LIST", help="some of the workloads (default: all)"
    )
    bench.add_argument(
        "--modes",
        type=_names,
        metavar="LIST",
        help=f"some of off, {', '.join(DRAFTERS)}, chain, auto (default: all)",
    )
    bench.add_argument("--runs", type=_count, metavar="N", help="how often each is measured (default: 3)")
    bench.add_argument(
        "--max-tokens", type=_count, metavar="N", help="longest answer in tokens (default: 300)"
    )
    bench.add_argument(
        "--temperature",
        type=_decimal(0.0, 5.0),
        default=0.0,
        metavar="T",
        help="draw the answers, each with a seed of its own (default: 0, greedy)",
    )
    bench.add_argument(
        "--max-draft",
        type=_draft_length,
        metavar="N",
        help="longest draft in tokens; with a peer, of its drafts by a model (--spec-draft-n-max)",
    )
    bench.add_argument("--threads", type=_count, metavar="N", help="CPU threads")
    bench.add_argument("--quick", action="store_true", help="a first look in under a minute")
    bench.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    bench.add_argument(
        "--plot", type=Path, metavar="FILE.png", help="draw speed-up and acceptance (needs matplotlib)"
    )
    bench.add_argument("--peer", metavar="PATH", help="a llama-server to run the same prompts through")
    bench.add_argument(
        "--peer-modes", type=_names, metavar="LIST", help="some of its --spec-type values (default: all)"
    )


def _add_serve(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    serve = add_parser(
        "serve",
        help="answer other programs on this machine, as OpenAI's API does",
        description="Serve models at http://localhost:1337/v1, behind the interface of OpenAI's API.",
    )
    serve.add_argument(
        "-m", "--model", metavar="MODEL", help="serve this one only (default: all in the models folder)"
    )
    serve.add_argument("--draft-model", type=Path, metavar="FILE", help=_DRAFT_MODEL)
    serve.add_argument(
        "--port", type=lambda text: _number(text, 1, 65535), default=1337, metavar="N", help="(default: 1337)"
    )
    serve.add_argument(
        "--host",
        action="append",
        metavar="ADDRESS",
        help="listen there, and not on this machine only; needs an API key; may be repeated",
    )
    serve.add_argument("--api-key", metavar="KEY", help=_API_KEY)
    serve.add_argument(
        "--allow-host", action="append", default=[], metavar="HOST:PORT", help="a further name of this server"
    )
    serve.add_argument(
        "--allow-origin", action="append", default=[], metavar="URL", help="a web page that may ask"
    )
    serve.add_argument(
        "--parallel", type=lambda text: _number(text, 1, 64), default=1, metavar="N", help="answers at once"
    )
    serve.add_argument(
        "--queue", type=_count, default=64, metavar="N", help="requests that may wait (default: 64)"
    )
    serve.add_argument(
        "--rate-limit",
        type=lambda text: _number(text, 0, 100_000),
        default=0,
        metavar="N",
        help="requests a minute that each client machine may make (default: no limit)",
    )
    serve.add_argument(
        "--idle-unload",
        type=_decimal(0.0, 1e6),
        default=0.0,
        metavar="MINUTES",
        help="the model leaves memory after so long without a request (default: never)",
    )
    serve.add_argument("--ctx", type=_count, metavar="N", help="context of each answer in tokens")
    serve.add_argument("--threads", type=_count, metavar="N", help="CPU threads")
    serve.add_argument(
        "--prompt-cache",
        type=lambda text: _number(text, 0, 1_048_576),
        metavar="MB",
        help="memory for conversations between their requests (default: as in the settings, at first 1024)",
    )
    serve.add_argument(
        "--no-learn", action="store_true", help="neither use nor keep what drafting learns from answers"
    )


def _add_models(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    models = add_parser(
        "models",
        help="list, download, check, import and delete models",
        description="Do what the Models page does, without a window.",
    )
    commands = models.add_subparsers(dest="models_command", metavar="command", required=True)

    def add(name: str, what: str, more: str = "") -> argparse.ArgumentParser:
        command: argparse.ArgumentParser = commands.add_parser(name, help=what, description=more or what)
        command.add_argument(
            "--json", action="store_true", help="print JSON on standard output, and nothing else"
        )
        return command

    listing = add("list", "the models on this machine, and what they take")
    listing.add_argument("--updates", action="store_true", help="ask the Hub whether there are newer ones")
    get = add(
        "get",
        "download a model and the drafter that fits it",
        "Download a model and the drafter that fits it. Without a name: go on with what is unfinished.",
    )
    get.add_argument(
        "name", nargs="?", metavar="MODEL", help="of the catalogue, a repository (owner/name), or a link"
    )
    get.add_argument("--quant", metavar="NAME", help="another quantisation than the one for this machine")
    get.add_argument(
        "--drafter",
        default="auto",
        metavar="auto|none|FILE",
        help="auto (the default) takes the best one that fits; a file beside the model, or a link to one",
    )
    get.add_argument(
        "--dry-run", action="store_true", help="say what would be downloaded, and what else there is"
    )
    remove = add("rm", "delete models; imported ones are only taken off the list")
    remove.add_argument("name", nargs="+", metavar="MODEL", help="by the name in the list, or by file")
    verify = add("verify", "read models in full and compare them with what was downloaded")
    verify.add_argument("name", nargs="*", metavar="MODEL", help="some models (default: all in the folder)")
    bring = add(
        "import",
        "list models where another program keeps them",
        "List models where they are, without copying. Without arguments: show what other programs have.",
    )
    source = bring.add_mutually_exclusive_group()
    source.add_argument("path", nargs="?", type=Path, metavar="PATH", help="a GGUF file, or a folder")
    source.add_argument(
        "--from",
        dest="program",
        choices=("huggingface", "lmstudio", "ollama", "jan", "all"),
        help="all models of a program",
    )
    search = add(
        "search",
        "models of the catalogue and on the Hugging Face Hub",
        "Search the catalogue and the Hub; of a repository (owner/name) or a link: show what is in it.",
    )
    search.add_argument("text", nargs="+", metavar="WORD", help="parts of a name, or a repository")
    search.add_argument("--limit", type=_count, default=20, metavar="N", help="how many (default: 20)")


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name for part in text.split(",") if (name := part.strip()))
    if not names:
        raise argparse.ArgumentTypeError("the list is empty")
    return names


def _count(text: str) -> int:
    return _number(text, 1, 2**31 - 1)


def _draft_length(text: str) -> int:
    return _number(text, 1, 64)


def _seed(text: str) -> int:
    return _number(text, 0, 2**63 - 1)


def _number(text: str, least: int, most: int) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"{number} is not between {least} and {most}")
    return number


def _decimal(least: float, most: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{text} is not between {least:g} and {most:g}")
        return number

    return parse


def _logit_bias(text: str) -> tuple[int, float]:
    token, equals, bias = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not ID=BIAS")
    return _number(token, 0, 2**31 - 1), _decimal(-100.0, 100.0)(bias)
