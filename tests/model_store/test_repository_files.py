"""A listing's files put together: by name for a start, by metadata for good. Cases F04, C04 and G11."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from model_store.hub import Hub, HubError, HubFile, HubRepository
from model_store.quantisation import named_quantisation, quantisation_of, rank
from model_store.remote_header import RemoteHeaders
from model_store.repository_files import FileGroup, RepositoryFiles, group_by_name, read_groups
from tests.model_store.local_hub import LocalHub
from tests.model_store.raw_gguf import CHAT, TENSORS, Raw, RawTensor, gguf, strings, text, u32
from tests.models.eagle3 import write_eagle3
from tests.models.qwen35 import write_qwen35
from tests.models.split import write_split
from tests.tiny_gguf import Tiny, write_llama

REPO = "someone/Model-4B-GGUF"


@pytest.fixture
def server() -> Iterator[LocalHub]:
    with LocalHub() as server:
        yield server


def listing(*paths: str) -> HubRepository:
    """Sizes grow along the list."""
    files = [HubFile(REPO, "1" * 40, path, size, None, "") for size, path in enumerate(paths, start=1000)]
    return HubRepository(REPO, "1" * 40, False, None, tuple(files))


def shown(files: RepositoryFiles) -> dict[str, list[str]]:
    return {f"{group.kind}: {group.name}": [each.label for each in group.variants] for group in files.groups}


def read(server: LocalHub, files: dict[str, bytes | Path]) -> RepositoryFiles:
    server.add(REPO, files)
    hub = Hub(server.url)
    return read_groups(group_by_name(hub.repository(REPO)), RemoteHeaders(hub))


# ---- quantisations


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        ("Qwen3-8B-Q4_K_M", ("Qwen3-8B", "Q4_K_M")),
        ("SmolLM2-135M-Instruct.Q4_1", ("SmolLM2-135M-Instruct", "Q4_1")),
        ("qwen2.5-coder-7b-q8_0", ("qwen2.5-coder-7b", "Q8_0")),
        ("gemma-4-E2B-it-qat-UD-Q4_K_XL", ("gemma-4-E2B-it-qat", "UD-Q4_K_XL")),
        ("gpt-oss-20b-MXFP4", ("gpt-oss-20b", "MXFP4")),
        ("Qwen3-8B-speculator.eagle3-F16", ("Qwen3-8B-speculator.eagle3", "F16")),
        ("Model.i1-IQ3_XXS", ("Model.i1", "IQ3_XXS")),
        ("model-fp16", ("model", "F16")),
        ("Q6_K", ("", "Q6_K")),
        ("Qwen3-8B", ("Qwen3-8B", "")),
        ("sequel-q8", ("sequel", "Q8")),
        ("mtp-gemma-4-E2B-it", ("mtp-gemma-4-E2B-it", "")),
    ],
)
def test_the_quantisation_at_the_end_of_a_name(stem: str, expected: tuple[str, str]) -> None:
    assert named_quantisation(stem) == expected


def test_four_bits_come_first_and_two_last() -> None:
    labels = ["Q2_K", "Q8_0", "Q4_K_M", "F16", "Q5_K_M", "Q3_K_M", "Q4_0", "whatever"]
    assert sorted(labels, key=rank) == [
        "Q4_K_M",
        "Q4_0",
        "Q5_K_M",
        "Q8_0",
        "Q3_K_M",
        "F16",
        "Q2_K",
        "whatever",
    ]
    assert (quantisation_of(15), quantisation_of(999), quantisation_of(None)) == ("Q4_K_M", "", "")


# ---- by name


def test_names_tell_models_drafters_and_the_rest() -> None:
    files = group_by_name(
        listing(
            "gemma-4-E2B-it-Q4_0.gguf",
            "gemma-4-E2B-it-Q8_0.gguf",
            "BF16/gemma-4-E2B-it-BF16-00001-of-00002.gguf",
            "BF16/gemma-4-E2B-it-BF16-00002-of-00002.gguf",
            "mtp-gemma-4-E2B-it-Q4_0.gguf",
            "dflash-gemma-4-E2B-it-Q8_0.gguf",
            "eagle3-gemma-4-E2B-it-Q8_0.gguf",
            "dspark-gemma-4-E2B-it-Q8_0.gguf",
            "mmproj-gemma-4-E2B-it-F16.gguf",
            "imatrix.gguf",
            "README.md",
            "imatrix_unsloth.dat",
        )
    )
    assert shown(files) == {
        "chat: gemma-4-E2B-it": ["Q4_0", "Q8_0", "BF16"],
        "drafter: dflash-gemma-4-E2B-it": ["Q8_0"],
        "drafter: dspark-gemma-4-E2B-it": ["Q8_0"],
        "drafter: eagle3-gemma-4-E2B-it": ["Q8_0"],
        "drafter: mtp-gemma-4-E2B-it": ["Q4_0"],
        "projector: mmproj-gemma-4-E2B-it": ["F16"],
        "other: imatrix": [""],
    }
    kinds = [group.draft_kind for group in files.of("drafter")]
    assert kinds == ["dflash", "dspark", "eagle3", "mtp"]
    assert [file.path for file in files.rest] == ["README.md", "imatrix_unsloth.dat"]
    assert not any(group.is_read for group in files.groups)
    split = files.groups[0].variant("bf16")
    assert split is not None and len(split.files) == 2 and not split.missing
    assert split.size == 1002 + 1003


def test_drafters_in_a_folder_or_a_repository_of_their_own() -> None:
    files = group_by_name(
        listing("MTP/Qwen3.6-27B-Q8_0.gguf", "Qwen3.6-27B-Q4_K_M.gguf", "Qwen3.5-4B-DFlash.Q8_0.gguf")
    )
    kinds = {group.name: group.draft_kind for group in files.groups if group.kind == "drafter"}
    assert kinds == {"Qwen3.6-27B": "mtp", "Qwen3.5-4B-DFlash": "dflash"}
    speculator = group_by_name(listing("Qwen3-8B-speculator.eagle3-F16.gguf")).groups[0]
    assert (speculator.draft_kind, speculator.variants[0].label) == ("eagle3", "F16")


def test_a_split_set_with_a_part_missing_says_so() -> None:
    files = group_by_name(listing("m-Q4_0-00001-of-00003.gguf", "m-Q4_0-00003-of-00003.gguf"))
    (group,) = files.groups
    (variant,) = group.variants
    assert (len(variant.files), variant.missing) == (2, 1)


def test_names_that_differ_by_case_belong_together_and_odd_ones_do_no_harm() -> None:
    files = group_by_name(
        listing("Model-Q4_0.gguf", "model-q8_0.GGUF", "../../x.gguf", "C:\\x.gguf", ".gguf", "Q4_K_M.gguf")
    )
    assert shown(files)["chat: Model"] == ["Q4_0", "Q8_0"]
    assert sum(len(group.variants) for group in files.groups) == 6
    assert files.group_of("model-q8_0.GGUF") is files.group_of("Model-Q4_0.gguf")
    assert files.group_of("README.md") is None


@pytest.mark.timeout(30)
def test_a_listing_of_20000_files_takes_no_time() -> None:
    files = group_by_name(listing(*(f"model-{number}-Q4_0.gguf" for number in range(20_000))))
    assert len(files.groups) == 20_000


# ---- by metadata


def arch(name: str, **more: Raw) -> dict[str, Raw]:
    return {**CHAT, "general.architecture": text(name), **more}


def test_metadata_decides_whatever_the_names_say(server: LocalHub, tmp_path: Path) -> None:
    """Case F04."""
    files = read(
        server,
        {
            "model-Q4_0.gguf": write_llama(tmp_path / "model.gguf"),
            "model-F16.gguf": gguf({"general.architecture": text("clip")}),
            "chat.gguf": gguf({"general.architecture": text("clip"), "clip.vision.projection_dim": u32(64)}),
            "model-Q8_0.gguf": write_eagle3(tmp_path / "head.gguf"),
            "mmproj-model.gguf": gguf(arch("llama", **{"general.type": text("adapter")})),
            "eagle3-model.gguf": gguf(arch("bert")),
            "model-Q2_K.gguf": gguf({"general.type": text("imatrix")}),
            "mtp-model.gguf": b"<html>not found</html>",
        },
    )
    assert shown(files) == {
        "chat: model": ["Q4_0"],
        "drafter: model": ["Q8_0"],
        "projector: chat": [""],
        "projector: model": ["F16"],
        "embedding: eagle3-model": [""],
        "adapter: mmproj-model": [""],
        "other: model": ["Q2_K"],
        "other: mtp-model": [""],
    }
    assert all(group.is_read for group in files.groups)
    (model,) = files.of("chat")
    assert (model.architecture, model.n_ctx_train, model.hidden_size) == ("llama", 2048, 64)
    assert [group.name for group in files.projectors_for(model)] == ["chat"]
    assert files.of("drafter")[0].draft_kind == "eagle3"
    broken = files.group_of("mtp-model.gguf")
    assert broken is not None and broken.problem == "mtp-model.gguf cannot be used: not a GGUF file."


def test_an_mtp_head_alone_is_no_model(server: LocalHub, tmp_path: Path) -> None:
    alone = write_qwen35(tmp_path / "alone.gguf", trunk=False)
    inside = write_qwen35(tmp_path / "inside.gguf", Tiny(n_layer=4))
    # As many layers as a real one has, and fewer tensors: told without reading their names.
    layers = {"qwen35.block_count": u32(25), "qwen35.nextn_predict_layers": u32(1)}
    few = gguf(arch("qwen35", **layers, **{"tokenizer.ggml.tokens": strings(["a", "b"])}))
    files = read(server, {"a-Q4_0.gguf": alone, "b-Q4_0.gguf": inside, "c-Q4_0.gguf": few})
    assert shown(files) == {"chat: b": ["Q4_0"], "drafter: a": ["Q4_0"], "drafter: c": ["Q4_0"]}
    assert [group.draft_kind for group in files.of("drafter")] == ["mtp", "mtp"]
    assert files.of("chat")[0].heads == 1


def test_quantisations_of_one_model_stay_together(server: LocalHub, tmp_path: Path) -> None:
    first = write_split(tmp_path / "m-F32.gguf")
    quantised = write_llama(tmp_path / "m.gguf", Tiny(n_layer=4))
    other = gguf(arch("llama", **{"general.file_type": u32(7)}), (*TENSORS, RawTensor("x")))
    parts = {f"F32/{part.name}": part for part in sorted(tmp_path.glob("m-F32-*"))}
    files = read(server, {"m-Q4_0.gguf": quantised, "m.gguf": other, **parts})
    assert len(parts) == 2 and first.name in str(parts)
    models: tuple[FileGroup, ...] = files.of("chat")
    found = [[(variant.label, len(variant.files)) for variant in group.variants] for group in models]
    assert sorted(found) == [[("Q4_0", 1), ("F32", 2)], [("Q8_0", 1)]], "of other sizes: another model"


def test_few_bytes_are_fetched_for_each_file(server: LocalHub, tmp_path: Path) -> None:
    paths = {f"m-Q{bits}_K.gguf": write_llama(tmp_path / f"{bits}.gguf") for bits in range(2, 7)}
    server.add(REPO, paths)
    hub = Hub(server.url)
    headers = RemoteHeaders(hub)
    files = read_groups(group_by_name(hub.repository(REPO)), headers)
    assert len(files.groups) == 1 and len(files.groups[0].variants) == 5
    assert headers.fetched <= 5 << 16


def test_looking_can_be_cancelled_and_errors_of_the_hub_are_told(server: LocalHub, tmp_path: Path) -> None:
    server.add(REPO, {"m-Q4_0.gguf": write_llama(tmp_path / "m.gguf")})
    hub = Hub(server.url)
    files = group_by_name(hub.repository(REPO))
    cancelled = threading.Event()
    cancelled.set()
    assert read_groups(files, RemoteHeaders(hub), cancelled.is_set) == files
    server.repositories[REPO].gated = frozenset()
    with pytest.raises(HubError) as caught:
        read_groups(files, RemoteHeaders(hub))
    assert caught.value.kind == "gated"
