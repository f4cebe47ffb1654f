"""What a card says, as plain data: made from what the store knows, drawn by ModelCard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from app.duration_words import time_left
from app.suggestions import Suggestion
from model_store.catalog import CatalogEntry
from model_store.fit import Verdict, shown_bytes
from model_store.library import ModelEntry
from model_store.readiness import Readiness
from ui.bidi import visible
from ui.models.words import KIND_WORDS, memory_words

if TYPE_CHECKING:
    from app.store_problem import StoreProblem
    from model_store.download_job import JobProgress
    from model_store.hub import HubHit
    from model_store.listed_sizes import ListedSizes
    from model_store.offer import Offer
    from ui.models.downloads import Getting

Action = Literal["get", "look_up", "stop_looking", "pause", "resume", "retry", "chat"]
MenuItem = Literal["verify", "stop_verifying", "show", "drafter", "unpair", "delete", "unlist", "page"]

ACTION_WORDS: dict[Action, str] = {
    "get": "Get",
    "look_up": "Look up",
    "stop_looking": "Stop",
    "pause": "Pause",
    "resume": "Resume",
    "retry": "Retry",
    "chat": "Chat",
}
LOOK_UPS = "n-gram look-ups"
_LOOK_UP_HELP = (
    "No drafter of its own: drafts come from looking up what was said before, which costs no memory."
)
_KEPT = "What has come is kept."
_STATE_WORDS = {
    "waiting": "waiting",
    "paused": "paused",
    "failed": "stopped",
    "complete": "here",
    "cancelled": "cancelled",
}


class Fact(Struct, frozen=True):
    """A few words of the line below, and what they mean."""

    text: str
    help: str


class Mark(Struct, frozen=True):
    """Whether it fits into memory; ``help`` gives the numbers."""

    verdict: Verdict
    help: str


class Trouble(Struct, frozen=True):
    """What went wrong: what happened, what was kept. ``link`` is a page that helps; ``token``: so may an
    access token."""

    what: str
    kept: str = ""
    link: str | None = None
    token: bool = False


class CardView(Struct, frozen=True, kw_only=True):
    """``working``: something goes on whose end is not known; ``progress`` is a share, of what is."""

    key: str
    title: str
    line: str = ""
    tag: str = ""
    facts: tuple[Fact, ...] = ()
    mark: Mark | None = None
    action: Action | None = None
    action_help: str = ""
    progress: float | None = None
    working: bool = False
    trouble: Trouble | None = None
    news: str = ""
    options: bool = False
    menu: tuple[MenuItem, ...] = ()


def suggested_view(
    suggestion: Suggestion,
    getting: Getting | None,
    *,
    sizes: ListedSizes | None = None,
    offer: Offer | None = None,
) -> CardView:
    """Of a model of the catalogue; ``sizes`` are known once the Hub was asked for its listing, ``offer``
    once it was asked for all."""
    entry = suggestion.entry
    view = CardView(
        key=catalog_key(entry),
        title=visible(entry.title),
        line=visible(entry.description),
        facts=_offered(offer) if offer is not None else _promised(entry, sizes),
        mark=_offer_mark(offer) if offer is not None else Mark(suggestion.fit.verdict, suggestion.fit.words),
        action="get",
        action_help="Download the model with its drafter",
        options=True,
        menu=("page",),
    )
    return _with_getting(view, getting)


def hit_view(
    hit: HubHit, offer: Offer | None, getting: Getting | None, problem: StoreProblem | None, looking: bool
) -> CardView:
    """Of a repository on the Hub."""
    facts = [Fact(f"{hit.downloads:,} downloads", "How often it was downloaded in the last month")]
    if hit.updated is not None:
        facts.append(Fact(f"changed {hit.updated:%Y-%m-%d}", "When it was changed last"))
    if hit.gated:
        facts.append(Fact("licence to accept", "Its owner wants a licence to be accepted on its page first"))
    if hit.downloads == 0 and hit.updated is None:
        facts = []
    view = CardView(
        key=hub_key(hit.repo),
        title=visible(hit.repo.partition("/")[2] or hit.repo),
        tag=visible(hit.repo.partition("/")[0]),
        line="" if offer is None else visible(offer.why),
        facts=tuple(facts) if offer is None else _offered(offer),
        mark=_offer_mark(offer) if offer is not None else None,
        action="get" if offer is not None else "look_up",
        action_help="Download it" if offer is not None else "See its quantisations and whether they fit",
        options=offer is not None,
        menu=("page",),
    )
    if looking:
        view = replace(view, working=True, action="stop_looking", action_help="Stop looking it up")
    if problem is not None:
        view = replace(view, trouble=trouble(problem), action="retry", action_help="Look it up again")
    return _with_getting(view, getting)


def ready_view(
    entry: ModelEntry,
    ready: Readiness | None,
    *,
    is_starter: bool,
    in_use: bool,
    inside_folder: bool,
    checking: bool = False,
    news: str = "",
    problem: Trouble | None = None,
) -> CardView:
    """Of a model that is here; ``ready`` is known once its header was read."""
    imported = entry.program is not None and not is_starter
    tag = "comes with Slipstream" if is_starter else f"from {entry.program}" if imported else ""
    menu: list[MenuItem] = ["stop_verifying" if checking else "verify", "show"]
    can_answer = entry.problem is None and entry.kind == "chat"
    if can_answer and inside_folder:
        menu.append("drafter")
        if ready is not None and ready.drafter is not None:
            menu.append("unpair")
    if imported:
        menu.append("unlist")
    elif not is_starter:
        menu.append("delete")
    if entry.problem is not None:
        problem = Trouble(f"It cannot be used: {entry.problem}.")
    return CardView(
        key=f"file:{entry.path}",
        title=visible(entry.name),
        line=visible(entry.description),
        tag=("in use" + (", " + tag if tag else "")) if in_use else tag,
        facts=_here(entry, ready),
        mark=Mark(ready.fit.verdict, memory_words(ready.target, ready.beside, ready.fit)) if ready else None,
        action="chat" if can_answer else None,
        action_help="Load it with its drafter, and chat" if ready and ready.kind else "Load it, and chat",
        working=checking,
        trouble=problem,
        news="Reading all of it to compare…" if checking else news,
        options=can_answer and inside_folder,
        menu=tuple(menu),
    )


def catalog_key(entry: CatalogEntry) -> str:
    return f"catalog:{entry.id}"


def hub_key(repo: str) -> str:
    return f"hub:{repo}"


def trouble(problem: StoreProblem, kept: str = "") -> Trouble:
    return Trouble(
        visible(problem.message), kept, problem.link, token=problem.kind in ("gated", "unauthorised")
    )


def job_words(job: JobProgress) -> tuple[str, str, str]:
    """How much of it has come, how fast, and how long it still takes; empty where there is nothing to
    say."""
    amount = f"{shown_bytes(job.received)} of {shown_bytes(job.size)}"
    if job.state != "active":
        return amount, _STATE_WORDS[job.state], ""
    phases = {file.phase for file in job.files}
    if "elsewhere" in phases:
        return amount, "another program", ""
    if "checking" in phases and "downloading" not in phases:
        return amount, "checking", ""
    if "retrying" in phases and "downloading" not in phases:
        return amount, "trying again", ""
    left = job.seconds_left
    return amount, f"{shown_bytes(round(job.rate))}/s", time_left(left) if left is not None else ""


def job_trouble(job: JobProgress) -> Trouble | None:
    """Why it stopped, and what was kept of it."""
    if job.error is None or job.state != "failed":
        return None
    kept = f"{shown_bytes(job.received)} are kept: Retry goes on from there." if job.received else ""
    error = job.error
    return Trouble(visible(error.message), kept, error.link, token=error.kind in ("gated", "unauthorised"))


def job_action(job: JobProgress) -> Action | None:
    """What its button does."""
    match job.state:
        case "waiting" | "active":
            return "pause" if job.ours else None
        case "paused":
            return "resume"
        case "failed":
            return "retry"
        case "complete":
            return "chat"
        case _:
            return None


def _with_getting(view: CardView, getting: Getting | None) -> CardView:
    """The card while its model is on its way."""
    if getting is None:
        return view
    job = getting.job
    if getting.problem is not None:
        return replace(
            view, trouble=trouble(getting.problem), action="retry", action_help="Try again", working=False
        )
    if job is None:
        facts = (Fact("Looking up what fits this machine…", "Asking the Hub for its files and headers"),)
        return replace(view, facts=facts, working=True, action="stop_looking", options=False)
    if job.state == "complete":
        return replace(
            view,
            action="chat",
            action_help="Load it with its drafter, and chat",
            options=False,
            tag="ready",
        )
    amount, rate, left = job_words(job)
    text = " · ".join(words for words in (amount, rate, left) if words)
    help = job.note or "How much has come, how fast, and how long it still takes"
    return replace(
        view,
        facts=(Fact(text, visible(help)),),
        progress=job.received / max(1, job.size),
        action=job_action(job),
        action_help=_KEPT if job.state == "active" else "",
        trouble=job_trouble(job),
        options=False,
    )


def _offered(offer: Offer) -> tuple[Fact, ...]:
    label = f"{offer.target.label}, " if offer.target.label else ""
    size = f"{label}{shown_bytes(offer.target.size)}"
    help = f"The model's file in the quantisation {offer.target.label or 'that there is'}"
    drafter = offer.drafter
    if drafter is not None and drafter.files:
        size += f" + {shown_bytes(drafter.size)} drafter"
        help += f", and its drafter {visible(drafter.name)}"
    facts = [Fact(size, help)]
    if drafter is None:
        facts.append(Fact(f"drafts with {LOOK_UPS}", visible(offer.why)))
    else:
        kind = KIND_WORDS[drafter.kind]
        facts.append(Fact(f"drafts with {kind}{', inside' if drafter.inside else ''}", visible(offer.why)))
    if offer.licence:
        facts.append(Fact(visible(offer.licence), "Its licence"))
    if offer.gated:
        facts.append(Fact("licence to accept", "Its owner wants a licence to be accepted on its page first"))
    return tuple(facts)


def _promised(entry: CatalogEntry, sizes: ListedSizes | None) -> tuple[Fact, ...]:
    """What the catalogue says, with sizes where the Hub was asked for them."""
    if sizes is None:
        wanted = shown_bytes(entry.min_memory)
        facts = [Fact(f"wants {wanted} of memory", f"{wanted} should be free when it is loaded")]
    else:
        label = f"{sizes.label}, " if sizes.label else ""
        size = f"{label}{shown_bytes(sizes.target)}"
        if sizes.drafter:
            size += f" + {shown_bytes(sizes.drafter)} drafter"
        facts = [Fact(size, "What is recommended of it, on disk; Get takes what fits this machine")]
    if entry.heads_inside:
        facts.append(Fact("drafts with MTP, inside", "Its own heads draft for it"))
    elif entry.drafters:
        kind = KIND_WORDS[entry.drafters[0].kind]
        facts.append(Fact(f"drafts with {kind}", "A drafter made for it comes along"))
    else:
        facts.append(Fact(f"drafts with {LOOK_UPS}", _LOOK_UP_HELP))
    if entry.licence:
        facts.append(Fact(visible(entry.licence), "Its licence"))
    return tuple(facts)


def _offer_mark(offer: Offer) -> Mark:
    beside = offer.drafter.need if offer.drafter is not None else None
    return Mark(offer.fit.verdict, memory_words(offer.target.need, beside, offer.fit))


def _here(entry: ModelEntry, ready: Readiness | None) -> tuple[Fact, ...]:
    size, help = shown_bytes(entry.size_bytes), "Its size on disk"
    if ready is not None and ready.drafter is not None and ready.problem is None:
        size += f" + {shown_bytes(ready.drafter_bytes)} drafter"
        help = f"Sizes on disk of the model and of its drafter {visible(ready.drafter.name)}"
    facts = [Fact(size, help)]
    if ready is None:
        return tuple(facts)
    if ready.problem is not None:
        name = Path(ready.drafter).name if ready.drafter is not None else ""
        facts.append(Fact(f"drafter does not fit: {visible(name)}", visible(ready.problem)))
    elif ready.inside:
        facts.append(Fact("drafter: MTP heads inside", "Its own heads draft for it"))
    elif ready.kind is not None:
        name = ready.drafter.name if ready.drafter is not None else ""
        help = f"{visible(name)} was made for it: their headers were compared"
        if ready.kind == "draft":
            help = f"{visible(name)} has the same vocabulary: their headers were compared"
        facts.append(Fact(f"drafter: {KIND_WORDS[ready.kind]}, fits", help))
    else:
        facts.append(Fact(f"drafts with {LOOK_UPS}", _LOOK_UP_HELP))
    return tuple(facts)
