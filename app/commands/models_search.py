"""``slipstream models search``: the catalogue and the Hub by words, or what is in one repository."""

from __future__ import annotations

import argparse
import json

import msgspec

from app.commands.terminal import printable
from model_store.fit import shown_bytes
from model_store.hub import HubHit
from model_store.repo_link import parse_repo
from model_store.repository_files import FileGroup, RepositoryFiles
from model_store.store import Store


def search(store: Store, options: argparse.Namespace) -> int:
    """Raises HubError; what the catalogue has is printed before the Hub is asked."""
    text = " ".join(options.text)
    link = parse_repo(text, store.hub.endpoint)
    if link is not None:
        files = store.repository(link.repo, link.revision)
        print(msgspec.json.encode(files).decode() if options.json else _repository(files))
        return 0
    known = store.catalog().search(text)
    if options.json:
        hits = store.search(text, options.limit)
        rows = [_row(hit) for hit in hits]
        print(json.dumps({"catalogue": [msgspec.to_builtins(entry) for entry in known], "hub": rows}))
        return 0
    for entry in known:
        print(f"{entry.id:32}{printable(entry.title)}: {printable(entry.description)}")
    hits = store.search(text, options.limit)
    for hit in hits:
        updated = f"  {hit.updated:%Y-%m-%d}" if hit.updated else ""
        gated = "  gated" if hit.gated else ""
        print(f"{printable(hit.repo):60}{hit.downloads:>12,} downloads{updated}{gated}")
    if not hits and not known:
        print("Neither the catalogue nor the Hub has a GGUF model of such a name.")
    return 0


def _row(hit: HubHit) -> dict[str, object]:
    return {
        "repository": hit.repo,
        "downloads": hit.downloads,
        "likes": hit.likes,
        "updated": hit.updated and hit.updated.isoformat(),
        "gated": hit.gated,
    }


def _repository(files: RepositoryFiles) -> str:
    lines = [f"{files.repo} at {files.revision[:8]}"]
    for group in files.groups:
        lines += ["", f"{printable(group.name)}: {_description(group)}"]
        for variant in group.variants:
            name = printable(variant.first.path)
            lines.append(f"  {variant.label or '-':12}{shown_bytes(variant.size):>10}  {name}")
    if not files.groups:
        lines.append("There are no GGUF files in it.")
    return "\n".join(lines)


def _description(group: FileGroup) -> str:
    words = [group.problem or group.noun, group.architecture]
    if group.n_ctx_train:
        words.append(f"context {group.n_ctx_train:,}")
    if group.heads:
        words.append("with MTP heads")
    return printable(", ".join(word for word in words if word))
