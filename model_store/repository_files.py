"""What a repository's files are: models in their quantisations, drafters, projectors, and the rest.

In a listing all of them look like quantisations of one model. Names give a first idea; what the files
say of themselves decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from model_store.check import ModelFileError
from model_store.classify import Kind, classify
from model_store.drafting_kind import DraftKind, drafting_kind
from model_store.fingerprint import vocabulary_size
from model_store.gguf_header import GgufHeader
from model_store.hub import HubFile, HubRepository
from model_store.quantisation import named_quantisation, quantisation_of
from model_store.remote_header import RemoteHeaders
from model_store.split import parts_of, split_name
from native.architectures import MTP

_READERS = 4  # outlines fetched at a time

_DRAFTER_WORDS: tuple[tuple[re.Pattern[str], DraftKind], ...] = (
    (re.compile(r"(?:^|[-_./])eagle-?3(?:[-_.]|$)"), "eagle3"),
    (re.compile(r"(?:^|[-_./])dspark(?:[-_.]|$)"), "dspark"),
    (re.compile(r"(?:^|[-_./])dflash(?:[-_.]|$)"), "dflash"),
    (re.compile(r"(?:^|/)mtp(?:[-_./]|$)|[-_.]assistant(?:[-_.]|$)"), "mtp"),
)
_KIND_WORDS: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (re.compile(r"(?:^|[-_./])mm-?proj(?:[-_.]|$)"), "projector"),
    (re.compile(r"(?:^|[-_./])lora(?:[-_.]|$)"), "adapter"),
    (re.compile(r"(?:^|[-_./])imatrix(?:[-_.]|$)"), "other"),
    (re.compile(r"(?:^|[-_./])(?:embed|embedding|bge|e5)(?:[-_.]|$)"), "embedding"),
)
_ORDER: tuple[Kind, ...] = ("chat", "drafter", "projector", "embedding", "adapter", "other")


class Variant(Struct, frozen=True):
    """One quantisation: a file, or the parts of a split one. ``label`` is "" where nothing names it.

    ``missing`` parts are not in the repository.
    """

    label: str
    files: tuple[HubFile, ...]
    missing: int = 0

    @property
    def size(self) -> int:
        """Bytes of all parts."""
        return sum(file.size for file in self.files)

    @property
    def first(self) -> HubFile:
        """The file with the metadata."""
        return self.files[0]


class FileGroup(Struct, frozen=True, kw_only=True):
    """One model, drafter or other thing in all its quantisations, the smallest first.

    ``is_read``: told by the files' metadata, not by their names. A drafter's kind may still turn out as
    "dspark" instead of "dflash", and ``heads`` that are named as missing: only tensors tell.
    ``problem`` says why it cannot be used.
    """

    name: str
    kind: Kind
    noun: str
    variants: tuple[Variant, ...]
    draft_kind: DraftKind | None = None
    is_read: bool = False
    architecture: str = ""
    n_ctx_train: int = 0
    hidden_size: int = 0
    heads: int = 0
    problem: str | None = None

    def variant(self, label: str) -> Variant | None:
        """By the name of its quantisation, in any case."""
        return next((each for each in self.variants if each.label.casefold() == label.casefold()), None)


class RepositoryFiles(Struct, frozen=True, kw_only=True):
    """A repository at one commit. ``rest`` are files that are no GGUF."""

    repo: str
    revision: str
    groups: tuple[FileGroup, ...]
    rest: tuple[HubFile, ...]

    def of(self, kind: Kind) -> tuple[FileGroup, ...]:
        return tuple(group for group in self.groups if group.kind == kind)

    def projectors_for(self, model: FileGroup) -> tuple[FileGroup, ...]:
        """Those whose output is as wide as the model's hidden states."""
        return tuple(
            group
            for group in self.of("projector")
            if group.is_read and group.hidden_size == model.hidden_size
        )

    def group_of(self, path: str) -> FileGroup | None:
        """The group that the file at ``path`` belongs to."""
        for group in self.groups:
            if any(file.path == path for variant in group.variants for file in variant.files):
                return group
        return None


class _Idea(NamedTuple):
    """What groups files: all that quantisations of one thing have in common."""

    name: str
    kind: Kind
    noun: str
    draft_kind: DraftKind | None = None
    sizes: tuple[object, ...] = ()


_NOUNS: dict[Kind, str] = {
    "chat": "a chat model",
    "drafter": "a drafter",
    "projector": "a projector for pictures or sound",
    "embedding": "an embedding model",
    "adapter": "an adapter for another model",
    "other": "something else",
}


def group_by_name(repository: HubRepository) -> RepositoryFiles:
    """A first idea, for the price of the listing alone."""
    ggufs = [file for file in repository.files if file.path.lower().endswith(".gguf")]
    found: dict[_Idea, tuple[_Idea, list[Variant]]] = {}
    for variant, idea in _variants(ggufs, repository.repo):
        key = idea._replace(name=idea.name.casefold())
        found.setdefault(key, (idea, []))[1].append(variant)
    return RepositoryFiles(
        repo=repository.repo,
        revision=repository.revision,
        groups=_sorted(
            FileGroup(
                name=idea.name,
                kind=idea.kind,
                noun=idea.noun,
                draft_kind=idea.draft_kind,
                variants=_by_size(variants),
            )
            for idea, variants in found.values()
        ),
        rest=tuple(file for file in repository.files if not file.path.lower().endswith(".gguf")),
    )


def read_groups(
    files: RepositoryFiles, headers: RemoteHeaders, cancelled: Callable[[], bool] = lambda: False
) -> RepositoryFiles:
    """The same by what the files say of themselves: one block is fetched of each.

    Returns early, with what names tell, once ``cancelled``. Raises HubError.
    """
    named = [(group, variant) for group in files.groups for variant in group.variants]
    with ThreadPoolExecutor(_READERS, thread_name_prefix="outline") as readers:
        jobs = [readers.submit(_outline, headers, variant, cancelled) for _, variant in named]
        try:
            outlines = [job.result() for job in jobs]
        except BaseException:
            readers.shutdown(cancel_futures=True)
            raise
    if cancelled():
        return files
    found: dict[_Idea, FileGroup] = {}
    for (group, variant), outline in zip(named, outlines, strict=True):
        if isinstance(outline, GgufHeader):
            idea, made = _read(group, variant, outline)
        else:
            idea = _Idea(group.name, "other", "a file that cannot be used", sizes=(outline,))
            made = FileGroup(
                name=group.name,
                kind=idea.kind,
                noun=idea.noun,
                variants=(variant,),
                is_read=outline is not None,
                problem=outline,
            )
        known = found.get(idea)
        found[idea] = replace(known, variants=known.variants + made.variants) if known else made
    return replace(
        files,
        groups=_sorted(replace(group, variants=_by_size(group.variants)) for group in found.values()),
    )


def _outline(
    headers: RemoteHeaders, variant: Variant, cancelled: Callable[[], bool]
) -> GgufHeader | str | None:
    """Its outline, or why it cannot be used; None when cancelled."""
    if cancelled():
        return None
    if variant.missing:
        return f"incomplete ({variant.missing} of {len(variant.files) + variant.missing} parts are missing)"
    try:
        outline = headers.outline(variant.first)
        return headers.gguf(variant.first).header if _is_unsure(outline) else outline
    except ModelFileError as error:
        return str(error)


def _is_unsure(outline: GgufHeader) -> bool:
    """Whether only its tensors' names tell a model from an MTP head without one."""
    heads = outline.number("{arch}.nextn_predict_layers") or 0
    blocks = outline.number("{arch}.block_count") or 0
    # A layer has a dozen tensors or more; with fewer than one for each layer there is no model around.
    return not outline.complete and heads > 0 and blocks <= outline.tensor_count < 12 * blocks


def _read(group: FileGroup, variant: Variant, header: GgufHeader) -> tuple[_Idea, FileGroup]:
    """What ``header`` says the file is, and a group of it alone."""
    classified, draft_kind = classify(header), drafting_kind(header)
    kind, noun = classified.kind, classified.noun
    heads = header.number("{arch}.nextn_predict_layers") or 0
    blocks = header.number("{arch}.block_count") or 0
    is_split = (header.number("split.count") or 1) > 1
    if kind == "chat" and heads and not header.complete and not is_split and header.tensor_count < blocks:
        kind, noun, draft_kind = "drafter", "an MTP head", "mtp"
    if kind == "chat":
        draft_kind = None
    hidden_size = header.number("{arch}.embedding_length") or 0
    if kind == "projector":
        hidden_size = next(
            (
                width
                for part in ("vision.", "audio.", "")
                if (width := header.number(f"{{arch}}.{part}projection_dim"))
            ),
            0,
        )
    label = variant.label or quantisation_of(header.number("general.file_type"))
    sizes = (header.architecture, blocks, hidden_size, heads, vocabulary_size(header))
    made = FileGroup(
        name=group.name,
        kind=kind,
        noun=noun,
        draft_kind=draft_kind,
        variants=(replace(variant, label=label),),
        is_read=True,
        architecture=header.architecture,
        n_ctx_train=header.number("{arch}.context_length") or 0,
        hidden_size=hidden_size,
        heads=heads if kind == "chat" and header.architecture in MTP else 0,
    )
    return _Idea(group.name, kind, noun, draft_kind, sizes), made


def _variants(files: list[HubFile], repo: str) -> Iterable[tuple[Variant, _Idea]]:
    """Single files and split sets, with what their names let one think."""
    by_path = {file.path: file for file in files}
    done: set[str] = set()
    for file in files:
        split = split_name(Path(file.path))
        paths = [part.as_posix() for part in parts_of(Path(file.path))]
        if paths[0] in done:
            continue
        done.add(paths[0])
        parts = tuple(by_path[path] for path in paths if path in by_path) or (file,)
        stem = split.stem if split is not None else file.name[: -len(".gguf")]
        stem, label = named_quantisation(stem)
        folder = file.path.rpartition("/")[0]
        yield Variant(label, parts, len(paths) - len(parts)), _idea(folder, stem, repo)


def _idea(folder: str, stem: str, repo: str) -> _Idea:
    name = stem or named_quantisation(folder.rpartition("/")[2])[0] or repo.rpartition("/")[2]
    path = f"{folder}/{stem}".casefold()
    for words, kind in _KIND_WORDS:
        if words.search(path):
            return _Idea(name, kind, _NOUNS[kind])
    for words, draft_kind in _DRAFTER_WORDS:
        if words.search(path):
            return _Idea(name, "drafter", _NOUNS["drafter"], draft_kind)
    return _Idea(name, "chat", _NOUNS["chat"])


def _by_size(variants: Iterable[Variant]) -> tuple[Variant, ...]:
    return tuple(sorted(variants, key=lambda variant: (variant.size, variant.first.path)))


def _sorted(groups: Iterable[FileGroup]) -> tuple[FileGroup, ...]:
    return tuple(sorted(groups, key=lambda group: (_ORDER.index(group.kind), group.name.casefold())))
