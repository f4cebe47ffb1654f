"""What a person can set, declared once with type, default, range and help, kept in one file."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Struct

from app import paths
from app.declaration import setting
from app.lenient import converted
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


class Group(Struct, frozen=True):
    """A part of the settings page."""

    name: str
    title: str


GROUPS: tuple[Group, ...] = (
    Group("drafting", "Drafting"),
    Group("engine", "Model and engine"),
    Group("sampling", "Sampling"),
    Group("appearance", "Appearance"),
    Group("storage", "Storage and Hub"),
    Group("server", "Local server"),
    Group("window", "Window"),
    Group("shortcuts", "Shortcuts"),
    Group("all", "All settings"),
)


class Settings(Struct, kw_only=True):
    """Every field has a default, so that a file from an older version still reads. The order of the fields
    is that of the rows on the page."""

    model: Annotated[str | None, setting("", "Model", "The GGUF file that answers.")] = None

    drafting: Annotated[
        bool,
        setting(
            "drafting",
            "Drafting",
            "Cheap drafters guess ahead and the model checks every guess; what it says does not change. "
            "Auto measures while it answers and drafts only where that is faster; manual always takes the "
            "first drafter that has something to say.",
            control="mode",
        ),
    ] = True
    draft_mode: Annotated[
        DraftMode,
        setting(
            "drafting",
            "Who drafts, and when",
            "Auto measures while it answers and drafts only where that is faster; "
            "manual always takes the first drafter that has something to say.",
            part_of="drafting",
        ),
    ] = "auto"
    links: Annotated[
        tuple[DrafterName, ...],
        setting(
            "drafting",
            "Drafters",
            "Who may guess; the first with something to say speaks.",
            control="chain",
        ),
    ] = DRAFTERS
    order: Annotated[
        tuple[DrafterName, ...],
        setting(
            "drafting",
            "Order",
            "Who is asked first in manual mode, with those that are off.",
            part_of="links",
        ),
    ] = DRAFTERS
    parameters: Annotated[
        LinkParameters,
        setting("drafting", "Parameters", "What each drafter goes by in manual mode.", part_of="links"),
    ] = LinkParameters()
    draft_model: Annotated[
        str | None,
        setting(
            "drafting",
            "Draft model",
            "A small GGUF of the same vocabulary, or a head for the model, that guesses ahead.",
            control="file",
            reloads=True,
        ),
    ] = None
    max_draft: Annotated[
        int,
        setting(
            "drafting",
            "Longest draft",
            "How many tokens a drafter may guess before the model checks them.",
            ge=1,
            le=64,
        ),
    ] = 48
    floor_auto: Annotated[
        float,
        setting(
            "drafting",
            "Floor",
            "Pauses a drafter while less than this share of what it drafts is accepted; "
            "0 leaves that to auto, which knows what drafts cost.",
            ge=0.0,
            le=1.0,
            control="share",
            least="Off",
            only_if=("draft_mode", "auto"),
        ),
    ] = 0.0
    floor_manual: Annotated[
        float,
        setting(
            "drafting",
            "Floor",
            "Pauses a drafter while less than this share of what it drafts is accepted, "
            "and tries it again now and then; 0 never pauses one.",
            ge=0.0,
            le=1.0,
            control="share",
            least="Off",
            only_if=("draft_mode", "manual"),
        ),
    ] = 0.2
    verification: Annotated[
        Verification,
        setting(
            "drafting",
            "Verification",
            "Automatic follows the model's own odds. Reproducible: a seed gives one text, "
            "whoever drafts. Exact: nor can rounding change it; a little slower.",
            choices={"automatic": "Automatic", "reproducible": "Reproducible", "exact": "Exact"},
        ),
    ] = "automatic"
    learn: Annotated[
        bool,
        setting(
            "drafting",
            "Learn from my answers",
            "Keeps what models answer you, on this computer and as token ids, so that the "
            "drafters cache and suffix can guess from it in other chats.",
            control="learning",
            reloads=True,
        ),
    ] = True
    lookup_cache: Annotated[
        str | None,
        setting(
            "drafting",
            "Lookup cache",
            "A file made with llama-lookup-create for this model's vocabulary, from which the "
            "drafter cache guesses where it knows nothing else.",
            control="file",
            reloads=True,
        ),
    ] = None

    idle_minutes: Annotated[
        int,
        setting(
            "engine",
            "Keep in memory",
            "Minutes without a message, also from other programs, after which the model leaves memory; the "
            "next one loads it again.",
            ge=0,
            le=1440,
            least="Always",
            unit="min",
            step=5,
        ),
    ] = 0
    n_ctx: Annotated[
        int,
        setting(
            "engine",
            "Context",
            "Tokens of chat the model can see at once; more takes more memory.",
            ge=256,
            le=1_048_576,
            step=256,
            reloads=True,
        ),
    ] = 4096
    n_threads: Annotated[
        int,
        setting(
            "engine",
            "Threads",
            "CPU threads; 0 takes one per physical core.",
            ge=0,
            le=512,
            least="Automatic",
            reloads=True,
        ),
    ] = 0
    n_batch: Annotated[
        int,
        setting(
            "engine",
            "Batch",
            "Tokens of a prompt that are read in one pass; more may read faster and takes more memory.",
            ge=8,
            le=8192,
            step=64,
            reloads=True,
        ),
    ] = 512
    n_gpu_layers: Annotated[
        int,
        setting(
            "engine",
            "GPU layers",
            "Layers that the graphics card computes; automatic takes as many as have room there.",
            ge=-1,
            le=999,
            least="Automatic",
            reloads=True,
        ),
    ] = -1
    kv_type: Annotated[
        Literal["f16", "f32", "q8_0"],
        setting(
            "engine",
            "KV cache",
            "How exactly the chat is kept in memory: 8 bits take half of what 16 do, at a small loss.",
            choices={"f16": "16 bits (f16)", "q8_0": "8 bits (q8_0)", "f32": "32 bits (f32)"},
            reloads=True,
        ),
    ] = "f16"
    prompt_cache_mb: Annotated[
        int,
        setting(
            "engine",
            "Chats at hand",
            "Memory for what the model has read of other chats, so that it need not read them again when "
            "they go on. It is taken only while there is room for it.",
            ge=0,
            le=1_048_576,
            least="None",
            unit="MB",
            step=256,
            reloads=True,
        ),
    ] = 1024
    flash_attention: Annotated[
        Literal["auto", "on", "off"],
        setting(
            "engine",
            "Flash attention",
            "A way to compute attention that takes less memory; automatic uses it where the engine can.",
            choices={"auto": "Automatic", "on": "On", "off": "Off"},
            reloads=True,
        ),
    ] = "auto"
    chat_templates: Annotated[
        dict[str, str],
        setting(
            "engine",
            "Chat template",
            "The chat format used for this model instead of its own.",
            control="template",
            reloads=True,
        ),
    ] = {}

    temperature: Annotated[
        float,
        setting(
            "sampling",
            "Temperature",
            "0 always takes the likeliest word; higher is more varied.",
            ge=0.0,
            le=2.0,
        ),
    ] = 0.8
    top_k: Annotated[
        int,
        setting(
            "sampling",
            "Top k",
            "Only so many of the likeliest tokens are drawn from.",
            ge=0,
            le=1000,
            least="All tokens",
        ),
    ] = 40
    top_p: Annotated[
        float,
        setting(
            "sampling",
            "Top p",
            "Only the likeliest tokens that together have this probability are drawn from; 1 takes all.",
            ge=0.01,
            le=1.0,
        ),
    ] = 0.95
    min_p: Annotated[
        float,
        setting(
            "sampling",
            "Min p",
            "Drops tokens that are less likely than this share of the likeliest one; 0 drops none.",
            ge=0.0,
            le=1.0,
            step=0.01,
        ),
    ] = 0.05
    repeat_penalty: Annotated[
        float,
        setting(
            "sampling",
            "Repeat penalty",
            "Makes tokens that were said lately less likely; 1 does nothing.",
            ge=0.1,
            le=10.0,
        ),
    ] = 1.0
    frequency_penalty: Annotated[
        float,
        setting(
            "sampling",
            "Frequency penalty",
            "Makes tokens less likely for each time they were said lately; 0 does nothing.",
            ge=-2.0,
            le=2.0,
        ),
    ] = 0.0
    presence_penalty: Annotated[
        float,
        setting(
            "sampling",
            "Presence penalty",
            "Makes tokens less likely once they were said lately; 0 does nothing.",
            ge=-2.0,
            le=2.0,
        ),
    ] = 0.0
    penalty_last_n: Annotated[
        int,
        setting(
            "sampling",
            "Penalty window",
            "How many of the last tokens the penalties look at, your own among them.",
            ge=-1,
            le=2**20,
            least="All tokens",
        ),
    ] = 64
    max_tokens: Annotated[
        int,
        setting(
            "sampling",
            "Longest answer",
            "Tokens after which an answer ends.",
            ge=0,
            le=1_000_000,
            least="No limit",
            step=64,
        ),
    ] = 0
    system_prompt: Annotated[
        str,
        setting(
            "sampling",
            "System prompt",
            "Instructions put before every chat.",
        ),
    ] = ""

    theme: Annotated[
        Literal["system", "light", "dark"],
        setting(
            "appearance",
            "Theme",
            "Light, dark, or what the desktop uses.",
            choices={"system": "System", "light": "Light", "dark": "Dark"},
        ),
    ] = "system"
    font_family: Annotated[
        str,
        setting("appearance", "Font", "For everything but code.", control="font"),
    ] = ""
    zoom: Annotated[
        int,
        setting(
            "appearance",
            "Text size",
            "Of the whole window, in percent of the usual size.",
            ge=75,
            le=200,
            unit="%",
            step=5,
        ),
    ] = 100
    density: Annotated[
        Literal["comfortable", "compact"],
        setting(
            "appearance",
            "Density",
            "How much room is between lines of lists and menus.",
            choices={"comfortable": "Comfortable", "compact": "Compact"},
        ),
    ] = "comfortable"

    show_drafts: Annotated[
        bool,
        setting(
            "appearance",
            "Show drafted text",
            "Underlines in answers what was drafted; each drafter has its own colour and kind of line.",
        ),
    ] = False

    models_folder: Annotated[
        str | None,
        setting(
            "storage",
            "Models folder",
            "Where Slipstream looks for GGUF files and puts what it downloads.",
            control="folder",
        ),
    ] = None
    offline: Annotated[
        bool,
        setting(
            "storage",
            "Stay offline",
            "Asks the Hugging Face Hub for nothing; models that are here go on working.",
        ),
    ] = False

    server: Annotated[
        bool,
        setting(
            "server",
            "Answer other programs",
            "Editors, agents and scripts on this computer can use the models here as they use OpenAI's.",
        ),
    ] = False
    server_port: Annotated[
        int,
        setting(
            "server",
            "Port",
            "Programs find the server at http://localhost: and this number, followed by /v1.",
            ge=1024,
            le=65535,
            is_name=True,
        ),
    ] = 1337
    server_access: Annotated[
        Literal["local", "network"],
        setting(
            "server",
            "Who may ask",
            "Programs on this computer alone, or on other machines of the network as well, which need the "
            "API key.",
            choices={"local": "This computer", "network": "Network"},
        ),
    ] = "local"
    server_parallel: Annotated[
        int,
        setting(
            "server",
            "Answers at once",
            "So many requests are answered together; further ones wait. Each takes memory for a context of "
            "its own. A chat that is alone is as fast as before, but exact verification is only for one.",
            ge=1,
            le=16,
            reloads=True,
        ),
    ] = 1
    server_requests_per_minute: Annotated[
        int,
        setting(
            "server",
            "Request limit",
            "Requests that the programs of one machine may make in a minute; those beyond are told when to "
            "try again.",
            ge=0,
            le=100_000,
            least="No limit",
            unit="/min",
            step=10,
        ),
    ] = 0

    notify_when_done: Annotated[
        bool,
        setting(
            "window",
            "Tell when an answer is done",
            "A notification of the desktop when a long answer ends while another window is in front.",
        ),
    ] = True
    tray: Annotated[
        bool,
        setting(
            "window",
            "Stay in the tray",
            "Closing the window leaves Slipstream running, with a symbol in the desktop's tray.",
        ),
    ] = False

    shortcuts: Annotated[
        dict[str, str],
        setting(
            "shortcuts",
            "Keys",
            "The keys for what the window can do.",
            control="shortcuts",
        ),
    ] = {}

    def sampling_params(self) -> SamplingParams:
        return SamplingParams(
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
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

    @property
    def needs_flash_attention(self) -> bool:
        """It is wanted off, but without it llama.cpp has no KV cache of 8 bits."""
        return self.kv_type == "q8_0" and self.flash_attention == "off"

    @property
    def n_parallel(self) -> int:
        """Answers that the model gives at once: several only to other programs."""
        return self.server_parallel if self.server else 1

    def engine_options(self, model_path: str) -> EngineOptions:
        return EngineOptions(
            n_ctx=self.n_ctx,
            n_batch=self.n_batch,
            n_threads=self.n_threads,
            n_gpu_layers=self.n_gpu_layers,
            kv_type=self.kv_type,
            n_parallel=self.n_parallel,
            prompt_cache_mb=self.prompt_cache_mb,
            flash_attention="auto" if self.needs_flash_attention else self.flash_attention,
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
    settings, ignored = converted(values, Settings)
    for name, why in ignored.items():
        log.warning("the setting %s has its default: %s", name, why)
    return settings
