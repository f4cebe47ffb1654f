"""``slipstream models``: what the Models page does, without a window."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence

from app import local_store
from app.cli import USAGE_ERROR, UsageError
from app.commands.models_get import job_row, run_get
from app.commands.models_search import search
from app.commands.terminal import note, printable
from app.devices import ask_devices, usable_memory
from app.settings import SettingsFile
from app.store_problem import store_problem
from model_store.download_job import JobProgress
from model_store.fit import shown_bytes
from model_store.hub_error import HubError
from model_store.imported import Imported
from model_store.library import ModelEntry
from model_store.offer_lookup import OfferError
from model_store.pairs import Pairs
from model_store.store import Event, Store, StoreError
from model_store.verification import FileCheck

_WIDEST_NAME = 48
_BAD = ("damaged", "missing", "unreadable")


def open_store(on_event: Callable[[Event], None] = lambda event: None) -> Store:
    """The store by the person's settings, which must be closed."""
    return local_store.open_store(
        SettingsFile().load(), free=lambda: usable_memory(ask_devices()), on_event=on_event
    )


def run_models(options: argparse.Namespace) -> int:
    """Run one of the commands. Raises UsageError for input that cannot be used."""
    if options.models_command == "get":
        return _guarded(lambda: run_get(options, open_store))
    store = open_store()
    try:
        return _guarded(lambda: _COMMANDS[options.models_command](store, options))
    finally:
        store.close()


def _guarded(run: Callable[[], int]) -> int:
    """The status of ``run``; what went wrong becomes one line."""
    try:
        return run()
    except Exception as error:
        problem = store_problem(error)
        if problem is None:
            raise
        if isinstance(error, OfferError | StoreError):
            raise UsageError(printable(problem.message)) from error
        note(f"{problem.message} {problem.link}" if problem.link else problem.message)
        return USAGE_ERROR if isinstance(error, HubError) and error.kind == "not_found" else 1


def _list(store: Store, options: argparse.Namespace) -> int:
    entries = store.entries()
    updates = {update.path: update for update in store.updates()} if options.updates else {}
    use = store.disk_use()
    if options.json:
        rows = []
        for entry in entries:
            row = _row(store, entry)
            if options.updates:
                update = updates.get(entry.path)
                row["update"] = update and (update.file.revision if update.file else "gone")
            rows.append(row)
        disk = {"models": use.models, "unfinished": use.unfinished, "other": use.other, "free": use.free}
        downloads = [job_row(job) for job in store.jobs()]
        outcome = {"folder": str(store.models), "models": rows, "downloads": downloads, "disk_bytes": disk}
        print(json.dumps(outcome))
        return 0
    print(_table(entries, store.pairs) if entries else "There are no models yet.")
    for path, update in updates.items():
        state = "a newer version is on the Hub" if update.file else "it is gone from the Hub"
        print(f"{printable(path.name)}: {state} ({update.manifest.repository})")
    for job in store.jobs():
        print(_unfinished(job))
    free = f", {shown_bytes(use.free)} are free" if use.free is not None else ""
    unfinished = f", {shown_bytes(use.unfinished)} of unfinished downloads" if use.unfinished else ""
    print(f"\n{store.models}: {shown_bytes(use.models)} of models{unfinished}{free}")
    return 0


def _unfinished(job: JobProgress) -> str:
    title, part = printable(job.title), f"{shown_bytes(job.received)} of {shown_bytes(job.size)}"
    if job.state == "active":
        return f"{title} is being downloaded by another program ({part})"
    why = f" {printable(job.error.message)}" if job.error is not None else ""
    return f"{title} is not finished ({part}): slipstream models get goes on with it.{why}"


def _rm(store: Store, options: argparse.Namespace) -> int:
    rows: list[dict[str, object]] = []
    for name in options.name:
        try:
            entry = store.find(name)
        except StoreError as missing:
            if missing.kind != "not_found":
                raise
            rows.append(_cancelled(store, name, missing))
            if not options.json:
                print(f"The download of {printable(name)} is cancelled.")
            continue
        removed = store.remove(entry)
        rows.append(
            {
                "name": entry.name,
                "deleted": [str(path) for path in removed.paths],
                "bytes_freed": removed.bytes_freed,
            }
        )
        if options.json:
            continue
        shown = printable(entry.name)
        if removed.paths:
            print(f"{shown} is deleted; {removed.bytes_freed:,} bytes are free again.")
        else:
            print(f"{shown} is off the list; its file stays where it is.")
    if options.json:
        print(json.dumps({"removed": rows}))
    return 0


def _cancelled(store: Store, name: str, missing: StoreError) -> dict[str, object]:
    """Of an unfinished download. Raises StoreError: ``missing`` when there is none such either."""
    try:
        job = store.cancel(name)
    except StoreError as error:
        raise missing if error.kind == "not_found" else error from None
    return {"name": name, "cancelled": job.title}


def _verify(store: Store, options: argparse.Namespace) -> int:
    if options.name:
        entries = [store.find(name) for name in options.name]
    else:
        entries = [entry for entry in store.entries() if entry.program is None]
    checks: list[FileCheck] = []
    for entry in entries:
        for check in store.verify(entry):
            checks.append(check)
            if not options.json:
                print(f"{check.outcome:10}  {printable(check.path.name)}: {check.reason}", flush=True)
    if options.json:
        rows = [{"path": str(c.path), "outcome": c.outcome, "reason": c.reason} for c in checks]
        print(json.dumps({"files": rows}))
    elif not checks:
        print("There is nothing to verify.")
    return 1 if any(check.outcome in _BAD for check in checks) else 0


def _import(store: Store, options: argparse.Namespace) -> int:
    if options.path is None and options.program is None:
        return _list_foreign(store, options)
    new: list[Imported]
    if options.path is not None:
        new = store.import_path(options.path)
    else:
        new = store.import_foreign(None if options.program == "all" else PROGRAMS[options.program])
    if options.json:
        rows = [{"name": model.name, "path": str(model.path), "program": model.program} for model in new]
        print(json.dumps({"imported": rows}))
    elif new:
        for model in new:
            print(f"{printable(model.name)} is listed, and stays where it is: {printable(str(model.path))}")
    else:
        print("Nothing is new there.")
    return 0


def _list_foreign(store: Store, options: argparse.Namespace) -> int:
    entries = store.foreign()
    if options.json:
        print(json.dumps({"found": [_row(store, entry) for entry in entries]}))
    elif entries:
        print(_table(entries, store.pairs))
        print("\nslipstream models import --from PROGRAM lists them here, without copying.")
    else:
        print("No other program's models were found. A file or a folder can be named.")
    return 0


PROGRAMS = {"huggingface": "Hugging Face", "lmstudio": "LM Studio", "ollama": "Ollama", "jan": "Jan"}
_COMMANDS: dict[str, Callable[[Store, argparse.Namespace], int]] = {
    "list": _list,
    "rm": _rm,
    "verify": _verify,
    "import": _import,
    "search": search,
}


def _row(store: Store, entry: ModelEntry) -> dict[str, object]:
    manifest, drafter = store.manifests.read(entry.path), store.pairs.drafter_of(entry.path)
    return {
        "name": entry.name,
        "path": str(entry.path),
        "kind": entry.kind,
        "size_bytes": entry.size_bytes,
        "problem": entry.problem,
        "architecture": entry.architecture,
        "description": entry.description,
        "fingerprint": entry.fingerprint,
        "program": entry.program,
        "drafter": str(drafter) if drafter else None,
        "repository": manifest and manifest.repository,
        "revision": manifest and manifest.revision,
        "sha256": manifest and manifest.sha256,
        "downloaded_at": manifest and manifest.downloaded_at.isoformat(),
    }


def _table(entries: Sequence[ModelEntry], pairs: Pairs) -> str:
    width = min(_WIDEST_NAME, max(len(entry.name) for entry in entries))
    lines: list[str] = []
    for entry in entries:
        program = f"  ({entry.program})" if entry.program else ""
        words = printable(entry.problem or entry.description)
        drafter = pairs.drafter_of(entry.path)
        if drafter is not None:
            words += f", with {printable(drafter.stem)}"
        lines.append(f"{printable(entry.name):{width}}{shown_bytes(entry.size_bytes):>11}  {words}{program}")
    return "\n".join(lines)
