"""The models that can be asked for by id, and how each is put into memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.local_models import local_models, models_folder
from app.protocol import Load
from app.server.errors import ApiError
from app.settings import Settings
from model_store.check import ModelFileError, read_model_file
from model_store.classify import classify
from model_store.starter import starter_path

_FRESH_S = 2.0  # how long a look into the folder is believed


@dataclass(frozen=True)
class Shelved:
    """``created``: when the file was last changed, in Unix seconds. ``embeds``: an embedding model."""

    id: str
    path: str
    created: int
    embeds: bool = False

    def body(self) -> dict[str, object]:
        return {"id": self.id, "object": "model", "created": self.created, "owned_by": "local"}


class Shelf:
    """Reading it may take long when the folder was never read: not for the event loop's thread."""

    def __init__(
        self,
        settings: Callable[[], Settings],
        *,
        draft: str | None = None,
        only: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``draft``: a drafter for all of them, in place of the one that belongs to each. ``only``: one file
        and no other."""
        self._settings = settings
        self._draft = draft
        self._only = only
        self._clock = clock
        self._read_at = -_FRESH_S
        self._models: dict[str, Shelved] = {}

    def models(self) -> list[Shelved]:
        self._read()
        return list(self._models.values())

    def find(self, id: str) -> Shelved:
        """Raises ApiError for an id that there is none of."""
        if id not in self._models:
            self._read()
        model = self._models.get(id)
        if model is None:
            raise ApiError(
                404,
                "There is no model of this id here; /v1/models lists those that there are.",
                param="model",
                code="model_not_found",
            )
        return model

    def load(self, model: Shelved) -> Load:
        """How it is put into memory."""
        options = self._settings().engine_options(model.path)
        return Load(request_id=0, model_path=model.path, draft_model_path=self._draft, options=options)

    def _read(self) -> None:
        now = self._clock()
        if now - self._read_at < _FRESH_S:
            return
        models: dict[str, Shelved] = {}
        for path, embeds in [(self._only, _embeds(self._only))] if self._only is not None else self._paths():
            try:
                str(path).encode()
                changed = int(path.stat().st_mtime)
            except UnicodeEncodeError:
                continue  # no text that could be told
            except OSError:
                continue  # it went away meanwhile
            # Two files of one name: the first in the list has it.
            models.setdefault(path.stem, Shelved(path.stem, str(path), changed, embeds))
        self._models = models
        self._read_at = now

    def _paths(self) -> list[tuple[Path, bool]]:
        """Each with whether it is an embedding model."""
        settings = self._settings()
        chosen = Path(settings.model) if settings.model is not None else None
        entries = local_models(models_folder(settings))
        usable = [entry for entry in entries if entry.problem is None and entry.kind in ("chat", "embedding")]
        listed = [(entry.path, entry.kind == "embedding") for entry in usable]
        starter = starter_path()
        return [
            *([(chosen, _embeds(chosen))] if chosen is not None else []),
            *listed,
            *([(starter, False)] if starter is not None else []),
        ]


def _embeds(path: Path) -> bool:
    """Whether it is an embedding model; what is wrong with a file is said when it is loaded."""
    try:
        return classify(read_model_file(path)).kind == "embedding"
    except ModelFileError:
        return False
