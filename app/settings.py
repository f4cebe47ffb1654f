"""What a person can set, declared once with type, default, range and help, kept in one file."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from app import paths
from app.protocol import (
    DRAFTERS,
    DrafterName,
    DraftingParams,
    DraftMode,
    EngineOptions,
    SamplingParams,
)
from drafting.parameters import LinkParameters
from model_store.files import write_atomically

log = logging.getLogger(__name__)

Verification = Literal["automatic", "reproducible", "exact"]


class Settings(Struct, kw_only=True):
    """Every field has a default, so that a file from an older version still reads."""

    model: Annotated[str | None, Meta(title="Model", description="The GGUF file that answers.")] = None
    draft_model: Annotated[
        str | None,
        Meta(
            title="Draft model",
            description="A small GGUF of the same vocabulary, or a head for the model, that guesses ahead.",
        ),
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
    order: Annotated[
        tuple[DrafterName, ...],
        Meta(title="Order", description="Who is asked first in manual mode, with those that are off."),
    ] = DRAFTERS
    parameters: Annotated[
        LinkParameters,
        Meta(title="Parameters", description="What each drafter goes by in manual mode."),
    ] = LinkParameters()
    max_draft: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            title="Longest draft",
            description="How many tokens a drafter may guess before the model checks them.",
        ),
    ] = 48
    floor_auto: Annotated[
        float,
        Meta(
            ge=0.0,
            le=1.0,
            title="Floor",
            description="Pauses a drafter while less than this share of what it drafts is accepted; "
            "0 leaves that to auto, which knows what drafts cost.",
        ),
    ] = 0.0
    floor_manual: Annotated[
        float,
        Meta(
            ge=0.0,
            le=1.0,
            title="Floor",
            description="Pauses a drafter while less than this share of what it drafts is accepted, "
            "and tries it again now and then; 0 never pauses one.",
        ),
    ] = 0.2
    verification: Annotated[
        Verification,
        Meta(
            title="Verification",
            description="Automatic follows the model's own odds. Reproducible: a seed gives one text, "
            "whoever drafts. Exact: nor can rounding change it; a little slower.",
        ),
    ] = "automatic"
    learn: Annotated[
        bool,
        Meta(
            title="Learn from my answers",
            description="Keeps what models answer you, on this computer and as token ids, so that the "
            "drafters cache and suffix can guess from it in other chats.",
        ),
    ] = True
    lookup_cache: Annotated[
        str | None,
        Meta(
            title="Lookup cache",
            description="A file made with llama-lookup-create for this model's vocabulary, from which the "
            "drafter cache guesses where it knows nothing else.",
        ),
    ] = None
    temperature: Annotated[
        float,
        Meta(
            ge=0.0,
            le=2.0,
            title="Temperature",
            description="0 always takes the likeliest word; higher is more varied.",
        ),
    ] = 0.8
    repeat_penalty: Annotated[
        float,
        Meta(
            ge=0.1,
            le=10.0,
            title="Repeat penalty",
            description="Makes tokens that were said lately less likely; 1 does nothing.",
        ),
    ] = 1.0
    frequency_penalty: Annotated[
        float,
        Meta(
            ge=-2.0,
            le=2.0,
            title="Frequency penalty",
            description="Makes tokens less likely for each time they were said lately; 0 does nothing.",
        ),
    ] = 0.0
    presence_penalty: Annotated[
        float,
        Meta(
            ge=-2.0,
            le=2.0,
            title="Presence penalty",
            description="Makes tokens less likely once they were said lately; 0 does nothing.",
        ),
    ] = 0.0
    penalty_last_n: Annotated[
        int,
        Meta(
            ge=-1,
            le=2**20,
            title="Penalty window",
            description="How many of the last tokens the penalties look at, your own among them; "
            "-1 looks at all.",
        ),
    ] = 64
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
        return SamplingParams(
            temperature=self.temperature,
            repeat_penalty=self.repeat_penalty,
            frequency_penalty=self.frequency_penalty,
            presence_penalty=self.presence_penalty,
            penalty_last_n=self.penalty_last_n,
        )

    def drafting_params(self) -> DraftingParams:
        return DraftingParams(
            mode=self.draft_mode,
            links=tuple(name for name in self.chain() if name in self.links) if self.drafting else (),
            parameters=self.parameters,
            max_draft=self.max_draft,
            floor=self.floor(self.draft_mode),
        )

    def chain(self) -> tuple[DrafterName, ...]:
        """All drafters in the order chosen; those that a file does not name come last."""
        return tuple(dict.fromkeys((*self.order, *DRAFTERS)))

    def floor(self, mode: DraftMode) -> float:
        return self.floor_auto if mode == "auto" else self.floor_manual

    def engine_options(self, model_path: str) -> EngineOptions:
        return EngineOptions(
            n_ctx=self.n_ctx,
            n_threads=self.n_threads,
            chat_template=self.chat_templates.get(model_path),
            answers_folder=str(paths.answers_dir()) if self.learn else None,
            lookup_cache=self.lookup_cache,
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
    return _converted(values, Settings, "")


_AnyStruct = TypeVar("_AnyStruct", bound=Struct)


def _converted(values: dict[str, object], kind: type[_AnyStruct], where: str) -> _AnyStruct:
    kept: dict[str, object] = {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name not in values:
            continue
        value, name = values[field.encode_name], f"{where}{field.encode_name}"
        inner = type(field.default)
        try:
            if issubclass(inner, Struct) and isinstance(value, dict):
                kept[field.name] = _converted(value, inner, f"{name}.")
            else:
                kept[field.name] = msgspec.convert(value, field.type)
        except (msgspec.ValidationError, ValueError) as error:
            log.warning("the setting %s has its default: %s", name, error)
    return kind(**kept)
