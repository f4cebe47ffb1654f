"""What Get would download, found out from listings and headers alone: cases C02, F04 and G10."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from model_store.catalog import Catalog, CatalogDrafter, CatalogEntry, CatalogTarget
from model_store.check import ModelFileError, read_model_file
from model_store.fingerprint import tokenizer_fingerprint
from model_store.fit import FreeMemory, Loading
from model_store.hub import Hub, HubError
from model_store.offer import Offer, Offers
from model_store.offer_lookup import OfferError
from model_store.remote_header import RemoteHeaders
from tests.model_store.local_hub import LocalHub
from tests.model_store.raw_gguf import CHAT, gguf, text, u32
from tests.models.dflash import write_dflash
from tests.models.eagle3 import write_eagle3
from tests.models.qwen35 import write_qwen35
from tests.models.split import write_split
from tests.tiny_gguf import Tiny, write_llama

REPO = "someone/Model-4B-GGUF"
HEADS = "else/Heads-GGUF"
SIZES = Tiny(n_layer=4)
PLENTY = FreeMemory(64 << 30)


@dataclass
class World:
    """A local Hub, and offers from it; ``folder`` is for the files to put there."""

    server: LocalHub
    folder: Path
    catalog: Catalog = field(default_factory=lambda: Catalog(()))

    def put(self, repo: str, **files: bytes | Path) -> None:
        """Files by name, with ``__`` for a dash and without the suffix."""
        self.server.add(repo, {f"{name.replace('__', '-')}.gguf": content for name, content in files.items()})

    def model(self, n_vocab: int = 512) -> Path:
        """A target; a larger vocabulary makes a larger file, as a higher quantisation would."""
        return write_llama(self.folder / f"model-{n_vocab}.gguf", Tiny(n_layer=4, n_vocab=n_vocab))

    def head(self) -> Path:
        return write_eagle3(self.folder / "head.gguf", SIZES)

    def misfit(self) -> Path:
        return write_eagle3(self.folder / "misfit.gguf", Tiny(n_layer=4, n_embd=128))

    @property
    def offers(self) -> Offers:
        hub = Hub(self.server.url)
        return Offers(hub, self.catalog, RemoteHeaders(hub))

    def offer(self, text: str = REPO, free: FreeMemory = PLENTY, **options: str) -> Offer:
        quantisation, drafter = options.get("quantisation"), options.get("drafter", "auto")
        return self.offers.offer(text, quantisation=quantisation, drafter=drafter, free=free)

    def refusal(self, text: str = REPO, **options: str) -> OfferError:
        with pytest.raises(OfferError) as caught:
            self.offer(text, **options)
        assert str(caught.value) == caught.value.message and caught.value.message.endswith(".")
        return caught.value


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with LocalHub() as server:
        yield World(server, tmp_path)


def names(offer: Offer) -> list[str]:
    return [file.name for file in offer.files]


def entry(
    file: str = "m-Q4_0.gguf", *drafters: CatalogDrafter, others: str = "m-*.gguf", repo: str = REPO
) -> CatalogEntry:
    return CatalogEntry(
        id="model-4b",
        title="Model 4B",
        description="For tests.",
        size_class="small",
        min_memory=1,
        licence="MIT",
        target=CatalogTarget(repo=repo, file=file, others=others),
        drafters=drafters,
    )


# ---- one click


def test_a_model_and_the_drafter_that_fits_it_in_one_job(world: World) -> None:
    world.put(REPO, m__Q4_0=world.model(), eagle3__m__Q8_0=world.head(), README=b"not a GGUF")
    offer = world.offer()
    assert names(offer) == ["m-Q4_0.gguf", "eagle3-m-Q8_0.gguf"]
    assert (offer.title, offer.repo, offer.licence, offer.gated) == ("m", REPO, "apache-2.0", False)
    assert offer.revision == world.server.repositories[REPO].sha
    assert offer.size == sum(file.size for file in offer.files)
    assert offer.fit.verdict == "fits"
    assert offer.drafter is not None and offer.drafter.checked
    assert offer.fit.needed == offer.target.needed + offer.drafter.needed
    assert offer.why == ("eagle3-m-Q8_0.gguf is an EAGLE-3 head that fits it: their headers were compared.")
    assert offer.fingerprint is not None and not offer.notices


def test_an_offer_is_data(world: World) -> None:
    world.put(REPO, m__Q4_0=world.model(), eagle3__m__Q8_0=world.head())
    offer = world.offer()
    shown = msgspec.json.decode(msgspec.json.encode(offer))
    assert shown["target"]["files"][0]["path"] == "m-Q4_0.gguf"
    assert shown["drafter"]["kind"] == "eagle3" and shown["fit"]["needed"] == offer.fit.needed


def test_only_headers_are_fetched(world: World) -> None:
    world.put(REPO, m__Q4_0=world.model(40_000), eagle3__m__Q8_0=world.misfit())
    world.offer()
    large = world.server.file(REPO, "m-Q4_0.gguf")
    assert world.server.sent(REPO, "m-Q4_0.gguf") < large.size // 4


@pytest.mark.parametrize(
    "drafter", ["auto", "none", "eagle3", "eagle3-m-Q8_0.gguf", f"{REPO}/eagle3-m-Q8_0.gguf"]
)
def test_the_drafter_can_be_chosen(world: World, drafter: str) -> None:
    other = write_dflash(world.folder / "other.gguf", Tiny(n_embd=128))
    world.put(REPO, m__Q4_0=world.model(), eagle3__m__Q8_0=world.head(), dflash__m__Q8_0=other)
    offer = world.offer(drafter=drafter)
    assert len(offer.files) == (1 if drafter == "none" else 2)
    assert [choice.name for choice in offer.drafters] == ["eagle3-m-Q8_0.gguf", "dflash-m-Q8_0.gguf"]
    if drafter == "none":
        assert offer.drafter is None and offer.why == "No drafter was asked for."


def test_a_drafter_elsewhere_can_be_named(world: World) -> None:
    world.put(REPO, m__Q4_0=world.model())
    world.put(HEADS, a__eagle3__F16=world.head(), b__eagle3__F16=world.misfit())
    link = f"{world.server.url}/{HEADS}/blob/main/a-eagle3-F16.gguf"
    assert names(world.offer(drafter=link)) == ["m-Q4_0.gguf", "a-eagle3-F16.gguf"]
    assert names(world.offer(drafter=f"{HEADS}:f16"))[1] == "a-eagle3-F16.gguf"
    assert world.refusal(drafter="c.gguf").message == "There is no drafter called c.gguf."
    wrong = world.refusal(drafter=link.replace("/a-", "/b-"))
    assert wrong.kind == "no_drafter"
    assert wrong.message.startswith(
        "b-eagle3-F16.gguf does not fit m-Q4_0.gguf: it reads hidden states of 128"
    )


def test_pairs_are_checked_before_a_drafter_is_offered(world: World) -> None:
    swapped = write_llama(world.folder / "swapped.gguf", Tiny(swap=(139, 300)))
    world.put(REPO, m__Q4_0=world.model())
    world.put(HEADS, draft__Q4_0=swapped)
    drafter = CatalogDrafter(kind="draft", repo=HEADS, file="draft-*.gguf")
    world.catalog = Catalog((entry("m-Q4_0.gguf", drafter),))
    offer = world.offer("model-4b")
    assert names(offer) == ["m-Q4_0.gguf"] and offer.drafter is None
    assert offer.why == (
        "draft-Q4_0.gguf does not fit m-Q4_0.gguf: token 139: `as` vs `ĩ` in the target; "
        "n-gram drafting works without one."
    )
    (refused,) = offer.drafters
    assert refused.problem is not None and refused.checked


def test_the_next_drafter_is_taken_where_the_first_does_not_fit(world: World) -> None:
    block = write_dflash(world.folder / "block.gguf", SIZES, markov=True)
    world.put(REPO, m__Q4_0=world.model(), eagle3__m__Q8_0=world.misfit(), dflash__m__Q8_0=block)
    offer = world.offer()
    assert names(offer) == ["m-Q4_0.gguf", "dflash-m-Q8_0.gguf"]
    assert offer.drafter is not None and offer.drafter.kind == "dspark", "told by its tensors"
    assert [choice.checked for choice in offer.drafters] == [True, True]


def test_heads_inside_come_first_and_cost_no_download(world: World) -> None:
    inside = write_qwen35(world.folder / "inside.gguf", SIZES)
    alone = write_qwen35(world.folder / "alone.gguf", SIZES, trunk=False)
    world.put(REPO, m__Q4_0=inside, mtp__m__Q8_0=alone)
    offer = world.offer()
    assert names(offer) == ["m-Q4_0.gguf"]
    assert offer.drafter is not None and offer.drafter.inside and offer.drafter.kind == "mtp"
    assert offer.why == "Its own MTP heads draft for it."
    assert names(world.offer(drafter="mtp-m-Q8_0.gguf"))[1] == "mtp-m-Q8_0.gguf"
    assert names(world.offer(drafter="inside")) == ["m-Q4_0.gguf"]


def test_a_model_without_any_drafter(world: World) -> None:
    world.put(REPO, m__Q4_0=world.model())
    offer = world.offer()
    assert offer.drafter is None and not offer.drafters
    assert offer.why == "No drafter for this model is known; n-gram drafting works without one."


def test_the_precise_quantisation_of_a_small_drafter_is_taken(world: World) -> None:
    head = world.head()
    files = {f"eagle3__m__{label}": head for label in ("Q2_K", "Q4_0", "Q8_0", "F16")}
    world.put(REPO, m__Q4_0=gguf_of(world, 8_000), **files)
    assert names(world.offer())[1] == "eagle3-m-Q8_0.gguf"


# ---- the quantisation for this machine


def needed(world: World) -> dict[str, int]:
    return {choice.label: choice.needed for choice in world.offer().targets}


def quantised(world: World) -> dict[str, int]:
    """A model in four quantisations, and what each needs."""
    sizes = {"Q2_K": 512, "Q4_K_M": 4_000, "Q8_0": 8_000, "F16": 16_000}
    world.put(REPO, **{f"m__{label}": gguf_of(world, n) for label, n in sizes.items()})
    return needed(world)


def gguf_of(world: World, kilobytes: int) -> Path:
    """The same model in a file of another size."""
    path = world.folder / f"{kilobytes}.gguf"
    path.write_bytes(world.model().read_bytes() + bytes(kilobytes << 10))
    return path


def test_the_best_quantisation_that_fits_is_recommended(world: World) -> None:
    needs = quantised(world)
    assert list(needs) == ["Q2_K", "Q4_K_M", "Q8_0", "F16"]
    assert names(world.offer()) == ["m-Q4_K_M.gguf"]
    # as much as the smallest needs, with doubts
    room = round(1.1 * needs["Q2_K"]) + (512 << 20)
    small = world.offer(free=FreeMemory(room))
    assert names(small) == ["m-Q2_K.gguf"] and small.fit.verdict == "fits"
    verdicts = [choice.fit.verdict for choice in small.targets]
    assert verdicts == ["fits", "tight", "tight", "tight"]


def test_the_smallest_is_offered_where_none_fits_and_a_person_may_go_ahead(world: World) -> None:
    needs = quantised(world)
    offer = world.offer(free=FreeMemory(needs["Q2_K"] - 1))
    assert names(offer) == ["m-Q2_K.gguf"] and offer.fit.verdict == "too_large"
    assert offer.fit.words.startswith("Will not fit: needs about ")
    wanted = world.offer(free=FreeMemory(1 << 20), quantisation="f16")
    assert names(wanted) == ["m-F16.gguf"] and wanted.fit.verdict == "too_large"


def test_a_quantisation_can_be_chosen(world: World) -> None:
    quantised(world)
    assert names(world.offer(quantisation="q8_0")) == ["m-Q8_0.gguf"]
    assert names(world.offer(f"{REPO}:Q8_0")) == ["m-Q8_0.gguf"]
    assert names(world.offer(f"{world.server.url}/{REPO}/resolve/main/m-F16.gguf")) == ["m-F16.gguf"]
    refused = world.refusal(quantisation="Q5_K_M")
    assert (refused.kind, refused.message) == (
        "no_quantisation",
        "There is no Q5_K_M of m; there are Q2_K, Q4_K_M, Q8_0, F16.",
    )


def test_a_drafter_that_would_not_leave_enough_memory_is_left_out(world: World) -> None:
    world.put(REPO, m__Q4_0=world.model(), eagle3__m__Q8_0=world.head())
    both = world.offer()
    room = round(1.1 * both.target.needed) + (512 << 20) + 1
    offer = world.offer(free=FreeMemory(room))
    assert offer.drafter is None and offer.fit.verdict == "fits"
    assert offer.why.startswith("There is too little memory for eagle3-m-Q8_0.gguf beside the model; ")
    assert len(world.offer(free=FreeMemory(room), drafter="eagle3").files) == 2


def test_a_longer_context_needs_more(world: World) -> None:
    world.put(REPO, m__Q4_0=world.model())
    short, long = (
        world.offers.offer(REPO, loading=Loading(n_ctx=n_ctx), free=PLENTY) for n_ctx in (256, 2048)
    )
    assert long.target.needed - short.target.needed >= 1792 * 4 * 64 * 2


def test_all_parts_of_a_split_model_are_in_the_job(world: World) -> None:
    first = write_split(world.folder / "m-F32.gguf", SIZES)
    parts = sorted(world.folder.glob("m-F32-*"))
    world.server.add(
        REPO, {f"F32/{part.name}": part for part in parts} | {"eagle3-m-Q8_0.gguf": world.head()}
    )
    offer = world.offer()
    assert names(offer) == [part.name for part in parts] + ["eagle3-m-Q8_0.gguf"]
    assert offer.target.files[0].name == first.name and offer.target.size == sum(
        part.stat().st_size for part in parts
    )


# ---- from the catalogue


def test_the_catalogue_names_target_and_drafter(world: World) -> None:
    drafter = CatalogDrafter(kind="eagle3", repo=HEADS, file="heads.eagle3-*.gguf")
    world.catalog = Catalog((entry("m-Q8_0.gguf", drafter),))
    world.put(REPO, m__Q4_K_M=gguf_of(world, 10), m__Q8_0=gguf_of(world, 20), other__Q4_K_M=world.model(600))
    world.put(HEADS, **{"heads.eagle3__F16": world.head()})
    offer = world.offer("Model 4B")
    assert names(offer) == ["m-Q8_0.gguf", "heads.eagle3-F16.gguf"]
    assert offer.title == "Model 4B" and not offer.notices
    assert [choice.label for choice in offer.targets] == ["Q4_K_M", "Q8_0"]


def test_a_file_that_is_gone_is_said_and_another_offered(world: World) -> None:
    """Case G10."""
    gone = CatalogDrafter(kind="eagle3", repo=REPO, file="eagle3-gone.gguf")
    nowhere = CatalogDrafter(kind="eagle3", repo="no/where", file="x.gguf")
    world.catalog = Catalog((entry("m-Q4_0.gguf", gone, nowhere),))
    world.put(REPO, m__Q8_0=world.model(), eagle3__m__Q8_0=world.head())
    offer = world.offer("model-4b")
    assert names(offer) == ["m-Q8_0.gguf", "eagle3-m-Q8_0.gguf"]
    first, second, third = offer.notices
    assert first == f"m-Q4_0.gguf is gone from {REPO}: m-Q8_0.gguf is offered instead."
    assert second == f"The drafter eagle3-gone.gguf is gone from {REPO}."
    assert third.startswith("The drafter in no/where could not be looked up: ")


def test_what_comes_with_the_program_is_not_offered(world: World) -> None:
    starter = CatalogEntry(id="s", title="Starter", description="Here.", size_class="starter", min_memory=1)
    world.catalog = Catalog((starter,))
    assert world.refusal("s").message == "Starter comes with the program: there is nothing to get."


# ---- what is wrong


def test_nothing_of_that_name(world: World) -> None:
    assert world.refusal("a model that is good").kind == "unknown"


def test_a_repository_without_a_chat_model(world: World) -> None:
    world.put(REPO, chat=gguf({"general.architecture": text("clip")}))
    assert world.refusal().message == f"There is no chat model in {REPO} that can be used here."


def test_a_link_to_something_else_than_a_model(world: World) -> None:
    world.put(REPO, m__Q4_0=world.model(), model__Q8_0=world.head(), broken=b"<html>")
    link = f"{world.server.url}/{REPO}/blob/main/"
    assert world.refusal(f"{link}model-Q8_0.gguf").message == (
        "model-Q8_0.gguf is an EAGLE-3 head: choose a chat model."
    )
    assert world.refusal(f"{link}broken.gguf").message == "broken.gguf cannot be used: not a GGUF file."
    assert world.refusal(f"{link}gone.gguf").message == f"gone.gguf is gone from {REPO}."


def test_several_models_in_one_repository(world: World) -> None:
    world.put(REPO, a__Q4_0=gguf_of(world, 1), a__Q8_0=gguf_of(world, 2), b__Q4_0=world.model(600))
    offer = world.offer()
    assert names(offer) == ["a-Q4_0.gguf"]
    assert offer.notices == (f"{REPO} also has b: link to a file to get another model.",)


def test_a_model_that_llama_cpp_would_die_of_is_refused(world: World) -> None:
    pairs = {**CHAT, "llama.expert_used_count": u32(4)}
    world.put(REPO, m__Q4_0=gguf(pairs))
    with pytest.raises(ModelFileError, match="it claims to use 4 of 0 experts"):
        world.offer()


def test_errors_of_the_hub_pass_through_and_looking_can_be_cancelled(world: World) -> None:
    with pytest.raises(HubError):
        world.offer()
    world.put(REPO, m__Q4_0=world.model())
    with pytest.raises(OfferError) as caught:
        world.offers.offer(REPO, free=PLENTY, cancelled=lambda: True)
    assert caught.value.kind == "cancelled"


def test_the_fingerprint_is_the_one_that_the_file_will_have(world: World) -> None:
    path = world.model()
    world.put(REPO, m__Q4_0=path)
    assert world.offer().fingerprint == tokenizer_fingerprint(read_model_file(path))
