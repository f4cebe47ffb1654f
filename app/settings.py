"""What a person can set, declared once with type, default, range and help, kept in one file."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from app import paths
from app.files import write_atomically
from app.protocol import (
    DRAFTERS,
    DrafterName,
    DraftingParams,
    DraftMode,
    EngineOptions,
    SamplingParams,
)

log = logging.getLogger(__name__)


class Settings(Struct, kw_only=True):
    """Every field has a default, so that a file from an older version still reads."""

    model: Annotated[str | None, Meta(title="Model", description="The GGUF file that answers.")] = None
    draft_model: Annotated[
        str | None,
        Meta(title="Draft model", description="A small GGUF with the same vocabulary that guesses ahead."),
    ] = None
    models_folder: Annotated[
        str | None,
        Meta(title="Models folder", description="Where Slipstream looks for GGUF files."),
    ] = None
    drafting: Annotated[
        bool,
        Meta(
            title="Drafting",
            description="Cheap drafters guess ahead and the model checks every guess; "
            "what it says does not change.",
        ),
    ] = True
    draft_mode: Annotated[
        DraftMode,
        Meta(
            title="Who drafts, and when",
            description="Auto measures while it answers and drafts only where that is faster; "
            "manual always takes the first drafter that has something to say.",
        ),
    ] = "auto"
    links: Annotated[
        tuple[DrafterName, ...],
        Meta(title="Drafters", description="Who may guess; the first with something to say speaks."),
    ] = DRAFTERS
    max_draft: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            title="Longest draft",
            description="How many tokens a drafter may guess before the model checks them.",
        ),
    ] = 48
    temperature: Annotated[
        float,
        Meta(
            ge=0.0,
            le=2.0,
            title="Temperature",
            description="0 always takes the likeliest word; higher is more varied.",
        ),
    ] = 0.8
    max_tokens: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            title="Longest answer",
            description="Tokens after which an answer ends; 0 for no limit but the context.",
        ),
    ] = 0
    system_prompt: Annotated[
        str, Meta(title="System prompt", description="Instructions put before every chat.")
    ] = ""
    n_ctx: Annotated[
        int,
        Meta(
            ge=256,
            le=1_048_576,
            title="Context",
            description="Tokens of chat the model can see at once; more takes more memory.",
        ),
    ] = 4096
    n_threads: Annotated[
        int,
        Meta(ge=0, le=512, title="Threads", description="CPU threads; 0 takes one per physical core."),
    ] = 0
    theme: Annotated[
        Literal["system", "light", "dark"],
        Meta(title="Theme", description="Light, dark, or what the desktop uses."),
    ] = "system"
    chat_templates: Annotated[
        dict[str, str],
        Meta(
            title="Chat template",
            description="The chat format used for a model instead of its own, by file.",
        ),
    ] = {}

    def sampling_params(self) -> SamplingParams:
        return SamplingParams(temperature=self.temperature)

    def drafting_params(self) -> DraftingParams:
        return DraftingParams(
            mode=self.draft_mode,
            links=self.links if self.drafting else (),
            max_draft=self.max_draft,
        )

    def engine_options(self, model_path: str) -> EngineOptions:
        return EngineOptions(
            n_ctx=self.n_ctx,
            n_threads=self.n_threads,
            chat_template=self.chat_templates.get(model_path),
        )


class SettingsFile:
    """The settings on disk. A file that cannot be read is set aside, never overwritten."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or paths.config_dir() / "settings.json"

    def load(self) -> Settings:
        try:
            return _lenient(msgspec.json.decode(self.path.read_bytes(), type=dict[str, object]))
        except FileNotFoundError:
            return Settings()
        except (msgspec.DecodeError, OSError) as error:
            aside = self.path.with_suffix(".damaged.json")
            log.warning("settings could not be read (%s); set aside as %s", error, aside.name)
            try:
                self.path.replace(aside)
            except OSError as failure:
                log.warning("the damaged settings could not be set aside: %s", failure)
            return Settings()

    def save(self, settings: Settings) -> None:
        """Raises OSError when the folder cannot be written."""
        write_atomically(self.path, msgspec.json.format(msgspec.json.encode(settings), indent=2))


def _lenient(values: dict[str, object]) -> Settings:
    """Every value that still means something; the others fall back to their defaults."""
    settings = Settings()
    for field in msgspec.structs.fields(Settings):
        if field.name in values:
            try:
                value = msgspec.convert(values[field.name], field.type)
            except msgspec.ValidationError as error:
                log.warning("the setting %s has its default: %s", field.name, error)
                continue
            setattr(settings, field.name, value)
    return settings
