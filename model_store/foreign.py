"""Finds the models that other programs keep on this machine, to be listed where they are."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from model_store.imported import Imported
from model_store.library import gguf_files
from model_store.split import split_name

HUGGING_FACE, LM_STUDIO, OLLAMA, JAN = "Hugging Face", "LM Studio", "Ollama", "Jan"
ANOTHER_FOLDER = "another folder"
"""The program of what the person named by hand."""

_MAX_TEXT = 1 << 20  # bytes of a manifest or of settings
_MAX_MANIFEST_DEPTH = 5  # host, namespace, model, tag, and one more
_DIGEST = re.compile(r"sha256[:-]([0-9a-f]{64})")
_OLLAMA_LAYER = re.compile(r"application/vnd\.ollama\.image\.(model|projector|adapter)")
_OLLAMA_SERVICE = Path("/usr/share/ollama/.ollama/models")  # on Linux, of a user of its own
_OLLAMA_DEFAULTS = ("registry.ollama.ai", "library")
_T = TypeVar("_T")


class _Layer(msgspec.Struct):
    digest: str = ""
    media_type: str = msgspec.field(default="", name="mediaType")


class _OllamaManifest(msgspec.Struct):
    layers: list[_Layer] = []


class _JanModel(msgspec.Struct):
    """A model.yml; paths in it are relative to Jan's data folder."""

    name: str | None = None
    model_path: str | None = None
    mmproj_path: str | None = None


class _JanSettings(msgspec.Struct):
    data_folder: str | None = None


class _LmStudioSettings(msgspec.Struct):
    downloads_folder: str | None = msgspec.field(default=None, name="downloadsFolder")


def find_foreign(home: Path | None = None, environment: Mapping[str, str] = os.environ) -> list[Imported]:
    """What the four programs keep in ``home`` (None: the person's) and where their variables point.

    Of a split model, the first part. Never raises for what it finds; nothing is written anywhere.
    """
    services = (_OLLAMA_SERVICE,) if home is None else ()
    home = home or Path.home()
    found: list[Imported] = []
    for places, read in (
        (_hugging_face_places(home, environment), read_hugging_face),
        (_lm_studio_places(home), read_lm_studio),
        ((*_ollama_places(home, environment), *services), read_ollama),
        (_jan_places(home, environment), read_jan),
    ):
        for place in dict.fromkeys(places):
            found.extend(read(place))
    return list({model.path: model for model in found}.values())


def read_folder(folder: Path) -> list[Imported]:
    """What is in a folder that the person named: of one of the four programs, or any with GGUF files."""
    for place in (folder, folder / "models", folder / "hub"):
        if (place / "manifests").is_dir() and (place / "blobs").is_dir():
            return list(read_ollama(place))
        if any(place.glob("models--*--*/snapshots")):
            return list(read_hugging_face(place))
    if (folder / "llamacpp" / "models").is_dir():
        return list(read_jan(folder))
    return list(_plain(folder, ANOTHER_FOLDER))


def read_hugging_face(cache: Path) -> Iterator[Imported]:
    """The GGUF files of a Hub cache; of a file that is in several snapshots, the newest one."""
    seen: set[Path] = set()
    for snapshot in sorted(_matching(cache, "models--*--*/snapshots/*"), key=_mtime, reverse=True):
        for model in _plain(snapshot, HUGGING_FACE):
            blob = model.path.resolve()
            if blob not in seen and blob.exists():
                seen.add(blob)
                yield model


def read_lm_studio(models: Path) -> Iterator[Imported]:
    yield from _plain(models, LM_STUDIO)


def read_ollama(models: Path) -> Iterator[Imported]:
    """The blobs that Ollama's manifests name, under the names that Ollama shows."""
    manifests = models / "manifests"
    for path in _files(manifests, _MAX_MANIFEST_DEPTH):
        manifest = _read(path, lambda data: msgspec.json.decode(data, type=_OllamaManifest))
        name = _ollama_name(path.relative_to(manifests).parts)
        for layer in manifest.layers if manifest and name else ():
            use, digest = _OLLAMA_LAYER.fullmatch(layer.media_type), _DIGEST.fullmatch(layer.digest)
            if use is None or digest is None:
                continue
            # Ollama before 0.1.36 had a colon in the name.
            blobs = (models / "blobs" / f"sha256{mark}{digest[1]}" for mark in "-:")
            blob = next(filter(_is_file, blobs), None)
            if blob is not None:
                yield Imported(blob, name if use[1] == "model" else f"{name} {use[1]}", OLLAMA)


def read_jan(data: Path) -> Iterator[Imported]:
    """The models of a data folder of Jan's: those that a model.yml names, and other files beside them."""
    listed: set[Path] = set()
    for models in (data / "llamacpp" / "models", data / "models"):
        for path in _files(models, _MAX_MANIFEST_DEPTH):
            if path.name != "model.yml":
                continue
            said = _read(path, lambda text: msgspec.yaml.decode(text, type=_JanModel))
            if said is None:
                continue
            name = said.name or path.parent.relative_to(models).as_posix()
            for file, suffix in ((said.model_path, ""), (said.mmproj_path, " projector")):
                if file and _is_file(data / file) and data / file not in listed:
                    listed.add(data / file)
                    yield Imported(data / file, name + suffix, JAN)
        yield from (model for model in _plain(models, JAN) if model.path not in listed)


def _hugging_face_places(home: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    if cache := environment.get("HF_HUB_CACHE") or environment.get("HUGGINGFACE_HUB_CACHE"):
        yield _expanded(cache, home)
    elif own := environment.get("HF_HOME"):
        yield _expanded(own, home) / "hub"
    else:
        yield _expanded(environment.get("XDG_CACHE_HOME") or ".cache", home) / "huggingface" / "hub"


def _lm_studio_places(home: Path) -> Iterator[Path]:
    pointer = _read(home / ".lmstudio-home-pointer", lambda data: data.decode().strip())
    homes = (*([Path(pointer)] if pointer else ()), home / ".lmstudio", home / ".cache" / "lm-studio")
    for place in homes:
        settings = _read(
            place / "settings.json", lambda data: msgspec.json.decode(data, type=_LmStudioSettings)
        )
        if settings is not None and settings.downloads_folder:
            yield _expanded(settings.downloads_folder, home)
        yield place / "models"


def _ollama_places(home: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    if models := environment.get("OLLAMA_MODELS"):
        yield _expanded(models, home)
    yield home / ".ollama" / "models"


def _jan_places(home: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    roaming = environment.get("APPDATA")
    for place in (
        _expanded(environment.get("XDG_CONFIG_HOME") or ".config", home) / "Jan",
        _expanded(environment.get("XDG_DATA_HOME") or ".local/share", home) / "Jan",
        home / "Library" / "Application Support" / "Jan",
        *([Path(roaming) / "Jan"] if roaming else ()),
    ):
        settings = _read(place / "settings.json", lambda data: msgspec.json.decode(data, type=_JanSettings))
        if settings is not None and settings.data_folder:
            yield _expanded(settings.data_folder, home)
        yield place / "data"
    yield home / "jan"


def _expanded(path: str, home: Path) -> Path:
    """``path`` seen from ``home``, for which a tilde stands."""
    return home / (path[2:] if path.startswith(("~/", "~\\")) else path)


def _plain(folder: Path, program: str) -> Iterator[Imported]:
    for path in gguf_files(folder):
        split = split_name(path)
        if split is None:
            yield Imported(path, path.stem, program)
        elif split.number == 1:
            yield Imported(path, split.stem, program)


def _ollama_name(parts: tuple[str, ...]) -> str:
    """``registry.ollama.ai/library/llama3/8b`` is called ``llama3:8b``; other hosts and owners stay."""
    if len(parts) < 3:
        return ""
    *owners, model, tag = parts
    for default in _OLLAMA_DEFAULTS:
        if owners and owners[0] == default:
            owners.pop(0)
    return "/".join((*owners, f"{model}:{tag}"))


def _matching(folder: Path, pattern: str) -> Iterable[Path]:
    try:
        return list(folder.glob(pattern))
    except OSError:
        return ()


def _files(folder: Path, depth: int) -> Iterator[Path]:
    if "\0" in str(folder):  # os.walk passes over all other folders that cannot be
        return
    for current, folders, names in os.walk(folder):
        if len(Path(current).relative_to(folder).parts) >= depth:
            folders.clear()
        folders.sort()
        yield from (Path(current) / name for name in sorted(names) if not name.startswith("."))


def _read(path: Path, parse: Callable[[bytes], _T]) -> _T | None:
    """What a file of another program says; None when it is not there or means nothing to us."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_TEXT + 1)
        return parse(data) if len(data) <= _MAX_TEXT else None
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError):
        return None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
