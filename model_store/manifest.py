"""What is known of a downloaded file: where it came from and what its content must be."""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from model_store.files import write_atomically
from model_store.fingerprint import TO_HASH, tokenizer_fingerprint
from model_store.gguf_header import GgufError, read_header
from model_store.hub import HubFile
from model_store.local_path import HIDDEN

log = logging.getLogger(__name__)
_SUFFIX = ".json"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """``file`` is the path in the repository, ``revision`` a commit, ``sha256`` that of the whole file.

    ``fingerprint`` is that of the tokenizer, None for a file without one.
    """

    repository: str
    revision: str
    file: str
    size: int
    sha256: str
    fingerprint: str | None
    downloaded_at: datetime

    def is_of(self, file: HubFile) -> bool:
        """Whether it is about ``file`` at any revision."""
        return (self.repository, self.file) == (file.repo, file.path)


class Manifests:
    """The manifests of the files in a models folder, one JSON each in a hidden folder beside them.

    Any thread and any process may use it: each manifest is replaced as a whole.
    """

    def __init__(self, models: Path) -> None:
        self._models = models
        self._folder = models / HIDDEN / "manifests"

    def read(self, path: Path) -> Manifest | None:
        """The manifest of the file at ``path``; None without one, and for a file elsewhere.

        One that cannot be understood is set aside under another name.
        """
        place = self._place(path)
        if place is None:
            return None
        try:
            return msgspec.json.decode(place.read_bytes(), type=Manifest)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            log.warning("the manifest %s cannot be read: %s", place, error)
            return None
        except msgspec.DecodeError as error:
            aside = place.with_suffix(".damaged")
            log.warning("the manifest %s is damaged (%s), so it is set aside as %s", place, error, aside)
            with suppress(OSError):
                place.replace(aside)
            return None

    def write(self, path: Path, manifest: Manifest) -> None:
        """Raises OSError, and ValueError for a file outside the models folder."""
        place = self._place(path)
        if place is None:
            raise ValueError(f"{path} is not in {self._models}")
        place.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(place, msgspec.json.format(msgspec.json.encode(manifest), indent=1))

    def remove(self, path: Path) -> None:
        """Forget the file at ``path``, and folders that this leaves empty. Raises OSError."""
        place = self._place(path)
        if place is None:
            return
        place.unlink(missing_ok=True)
        for folder in place.parents:
            if folder == self._folder:
                break
            try:
                folder.rmdir()
            except OSError:  # it is not empty
                break

    def all(self) -> dict[Path, Manifest]:
        """Every manifest, by the path of its file, whether that file is still there or not."""
        found: dict[Path, Manifest] = {}
        for place in sorted(self._folder.rglob(f"*{_SUFFIX}")):
            path = self._models / place.relative_to(self._folder).with_suffix("")
            manifest = self.read(path)
            if manifest is not None:
                found[path] = manifest
        return found

    def _place(self, path: Path) -> Path | None:
        try:
            relative = path.relative_to(self._models)
        except ValueError:
            return None
        return self._folder / relative.with_name(relative.name + _SUFFIX)


def manifest_of(file: HubFile, path: Path, sha256: str) -> Manifest:
    """The manifest of ``file``, which lies whole at ``path``. Raises OSError."""
    try:
        fingerprint = tokenizer_fingerprint(read_header(path, hash_arrays=TO_HASH))
    except GgufError:
        fingerprint = None
    return Manifest(
        repository=file.repo,
        revision=file.revision,
        file=file.path,
        size=file.size,
        sha256=sha256,
        fingerprint=fingerprint,
        downloaded_at=datetime.now(UTC).replace(microsecond=0),
    )
