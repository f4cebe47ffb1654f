"""Decides where downloads go: never outside the models folder, never over a file that is not theirs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from model_store.download import DownloadError
from model_store.download_job import FileRecord, JobRecord, file_record
from model_store.hub import HubFile
from model_store.local_path import UnsafePathError, local_path, renamed, same_place
from model_store.manifest import Manifests


class DownloadPlaces:
    """Places in one models folder, by what lies there and what is going to."""

    def __init__(self, models: Path, manifests: Manifests) -> None:
        self._models = models
        self._manifests = manifests

    def plan(self, files: Sequence[HubFile], jobs: Iterable[JobRecord]) -> tuple[FileRecord, ...]:
        """Where ``files`` go, next to those of ``jobs``. Raises DownloadError (unsafe_name)."""
        planned = {same_place(PurePosixPath(file.place)): file.file for job in jobs for file in job.files}
        records = []
        for file in files:
            try:
                place = local_path(file.repo, file.path)
            except UnsafePathError as error:
                raise DownloadError("unsafe_name", str(error)) from None
            other = planned.get(same_place(place))
            others = other is not None and (other.repo, other.path) != (file.repo, file.path)
            if others or self._taken(place, file):
                place = renamed(place, f"{file.repo}/{file.path}")
            path = self._models / place
            if not path.parent.resolve().is_relative_to(self._models.resolve()):
                raise DownloadError(
                    "unsafe_name", f"{path} would lie outside the models folder, by a link: not downloaded."
                )
            planned[same_place(place)] = file
            records.append(file_record(file, str(place)))
        return tuple(records)

    def _taken(self, place: PurePosixPath, file: HubFile) -> bool:
        """Whether something else lies there, or would on a system that ignores case."""
        folder = (self._models / place).parent
        try:
            there = list(folder.iterdir())
        except OSError:
            return False
        for path in there:
            if same_place(PurePosixPath(path.name)) != same_place(PurePosixPath(place.name)):
                continue
            manifest = self._manifests.read(path)
            if manifest is not None:
                if not manifest.is_of(file):
                    return True
            elif path.name != place.name or _size(path) != file.size:
                return True
        return False


def _size(path: Path) -> int | None:
    """Bytes of the file; None for what is none, such as a link that leads nowhere."""
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None
