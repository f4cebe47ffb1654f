"""Models of other programs: found in their layouts, listed in place, and never copied."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from model_store.foreign import find_foreign, read_folder
from model_store.imported import Imported, ImportedError, ImportedModels
from model_store.library import list_models
from model_store.scan_cache import ScanCache
from tests.model_store.raw_gguf import CHAT, gguf, text, u32

ROOT = Path(__file__).resolve().parents[2]


def model(name: str) -> bytes:
    return gguf({**CHAT, "general.name": text(name)})


def hub_file(cache: Path, repo: str, revision: str, name: str, data: bytes) -> Path:
    """A file as huggingface_hub lays it down: a blob, and a link in a snapshot."""
    folder = cache / f"models--{repo.replace('/', '--')}"
    blob = folder / "blobs" / hashlib.sha256(data).hexdigest()
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(data)
    link = folder / "snapshots" / revision / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(os.path.relpath(blob, link.parent))
    return link


def ollama_model(models: Path, name: str, layers: dict[str, bytes], mark: str = "-") -> None:
    described = []
    for use, data in layers.items():
        digest = hashlib.sha256(data).hexdigest()
        (models / "blobs").mkdir(parents=True, exist_ok=True)
        (models / "blobs" / f"sha256{mark}{digest}").write_bytes(data)
        media = f"application/vnd.ollama.image.{use}"
        described.append({"mediaType": media, "digest": f"sha256:{digest}", "size": len(data)})
    manifest = models / "manifests" / name
    manifest.parent.mkdir(parents=True, exist_ok=True)
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": described}))


def names(found: list[Imported]) -> dict[str, str]:
    return {model.name: model.program for model in found}


def everything(folder: Path) -> dict[Path, bytes | str]:
    return {
        path: path.readlink().as_posix() if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def test_nothing_to_find(tmp_path: Path) -> None:
    assert find_foreign(tmp_path, {}) == []
    assert read_folder(tmp_path / "absent") == []


def test_hugging_face_cache(tmp_path: Path) -> None:
    cache = tmp_path / ".cache" / "huggingface" / "hub"
    old = hub_file(cache, "o/n", "1" * 40, "a-Q4.gguf", model("a"))
    new = hub_file(cache, "o/n", "2" * 40, "a-Q4.gguf", model("a"))
    os.utime(old.parent, (1, 1))
    hub_file(cache, "o/n", "2" * 40, "sub/b-00001-of-00002.gguf", model("b1"))
    hub_file(cache, "o/n", "2" * 40, "sub/b-00002-of-00002.gguf", model("b2"))
    hub_file(cache, "o/n", "2" * 40, "README.md", b"no model")
    gone = hub_file(cache, "o/n", "2" * 40, "gone.gguf", model("gone"))
    gone.resolve().unlink()
    found = find_foreign(tmp_path, {})
    assert names(found) == {"a-Q4": "Hugging Face", "b": "Hugging Face"}
    assert new in {model.path for model in found}
    for variables in ({"HF_HUB_CACHE": str(cache)}, {"HF_HOME": str(cache.parent)}):
        assert find_foreign(tmp_path / "other", variables) == found
    assert find_foreign(tmp_path, {"HF_HOME": str(tmp_path / "empty")}) == []
    assert read_folder(cache.parent) == read_folder(cache) == found


def test_lm_studio(tmp_path: Path) -> None:
    for place in (".lmstudio/models/pub/repo", ".cache/lm-studio/models/pub/repo", "moved/models", "down"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / f"{place.split('/')[0].strip('.')}.gguf").write_bytes(model(place))
    assert names(find_foreign(tmp_path, {})) == {"lmstudio": "LM Studio", "cache": "LM Studio"}
    (tmp_path / ".lmstudio-home-pointer").write_text(f"{tmp_path / 'moved'}\n")
    (tmp_path / "moved" / "settings.json").write_text(json.dumps({"downloadsFolder": str(tmp_path / "down")}))
    assert set(names(find_foreign(tmp_path, {}))) == {"lmstudio", "cache", "moved", "down"}


def test_ollama(tmp_path: Path) -> None:
    models = tmp_path / ".ollama" / "models"
    weights = model("llama")
    ollama_model(models, "registry.ollama.ai/library/llama3.2/3b", {"model": weights, "license": b"MIT"})
    ollama_model(models, "registry.ollama.ai/someone/llava/latest", {"model": model("l"), "projector": b"p"})
    ollama_model(models, "hf.co/owner/repo/Q4_K_M", {"model": model("hf")}, mark=":")
    found = find_foreign(tmp_path, {})
    assert names(found) == dict.fromkeys(
        (
            "llama3.2:3b",
            "someone/llava:latest",
            "someone/llava:latest projector",
            "hf.co/owner/repo:Q4_K_M",
        ),
        "Ollama",
    )
    path = next(model.path for model in found if model.name == "llama3.2:3b")
    assert path.read_bytes() == weights
    assert find_foreign(tmp_path / "other", {"OLLAMA_MODELS": str(models)}) == found
    assert read_folder(models.parent) == read_folder(models) == found


def test_ollama_manifests_that_lie_are_passed_over(tmp_path: Path) -> None:
    models = tmp_path / "models"
    (tmp_path / "secret").write_bytes(model("secret"))
    media = "application/vnd.ollama.image.model"
    absent = "sha256:" + "0" * 64
    for number, manifest in enumerate(
        (
            b"",
            b"[]",
            b'{"layers": 3}',
            b'{"layers": [{"mediaType": 3}]}',
            b"[" * 100_000,
            b" " * (2 << 20),
            json.dumps({"layers": [{"mediaType": media, "digest": "../../secret"}]}).encode(),
            json.dumps({"layers": [{"mediaType": media, "digest": absent}]}).encode(),
        )
    ):
        path = models / "manifests" / "registry.ollama.ai" / "library" / "bad" / str(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(manifest)
    (models / "blobs").mkdir()
    assert read_folder(models) == []


def test_jan(tmp_path: Path) -> None:
    data = tmp_path / "jan data"
    settings = tmp_path / ".config" / "Jan" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"data_folder": str(data)}))
    models = data / "llamacpp" / "models"
    (models / "owner" / "a").mkdir(parents=True)
    (models / "owner" / "a" / "model.gguf").write_bytes(model("a"))
    (models / "owner" / "a" / "mmproj.gguf").write_bytes(model("m"))
    (models / "owner" / "a" / "model.yml").write_text(
        "name: A model\nmodel_path: llamacpp/models/owner/a/model.gguf\n"
        "mmproj_path: llamacpp/models/owner/a/mmproj.gguf\nsize_bytes: 5\nsha256: null\n"
    )
    elsewhere = tmp_path / "elsewhere.gguf"
    elsewhere.write_bytes(model("e"))
    for name, content in (("linked", f"model_path: {elsewhere}\n"), ("bad", "a: [\n"), ("none", "3")):
        (models / name).mkdir()
        (models / name / "model.yml").write_text(content)
    (data / "models" / "old").mkdir(parents=True)
    (data / "models" / "old" / "old.gguf").write_bytes(model("old"))
    found = find_foreign(tmp_path, {})
    assert names(found) == dict.fromkeys(("A model", "A model projector", "linked", "old"), "Jan")
    assert elsewhere in {model.path for model in found}
    assert read_folder(data) == found


def test_folder_of_plain_files(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.gguf").write_bytes(model("a"))
    assert names(read_folder(tmp_path)) == {"a": "another folder"}


def test_import_lists_and_copies_nothing(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    hub_file(theirs / ".cache" / "huggingface" / "hub", "o/n", "1" * 40, "a.gguf", model("a"))
    ollama_model(theirs / ".ollama" / "models", "registry.ollama.ai/library/l/x", {"model": model("l")})
    before = everything(theirs)
    imported = ImportedModels(ours / "imported.json")
    assert imported.models() == ()
    found = find_foreign(theirs, {})
    assert imported.add(found) == found
    assert imported.add(found) == []
    again = ImportedModels(ours / "imported.json")
    assert again.models() == tuple(found)
    entries = list_models(ours / "models", ScanCache(), again.models())
    assert {(e.name, e.program, e.kind, e.problem) for e in entries} == {
        ("a", "Hugging Face", "chat", None),
        ("l:x", "Ollama", "chat", None),
    }
    assert again.remove(found[0].path)
    assert not again.remove(found[0].path)
    assert [model.name for model in imported.models()] == [found[1].name]
    assert everything(theirs) == before
    assert sorted(path.name for path in ours.rglob("*")) == ["imported.json", "imported.lock"]


def test_programs_that_import_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from model_store.imported import Imported, ImportedModels\n"
        "imported = ImportedModels(Path(sys.argv[1]))\n"
        "for number in range(20):\n"
        "    imported.add([Imported(Path(f'/{sys.argv[2]}-{number}.gguf'), 'a', 'Jan')])"
    )
    file = tmp_path / "imported.json"
    running = [subprocess.Popen([sys.executable, "-c", program, str(file), name], cwd=ROOT) for name in "abc"]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert len(ImportedModels(file).models()) == 60


def test_folder_that_cannot_be_holds_nothing(tmp_path: Path) -> None:
    settings = tmp_path / ".config" / "Jan" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_bytes(b'{"data_folder": "/a\\u0000b"}')
    assert find_foreign(tmp_path, {}) == []


@pytest.mark.parametrize("damage", [b"", b"{", b'{"version": 1, "models": [{"path": 3}]}'])
def test_damaged_list_is_set_aside(tmp_path: Path, damage: bytes) -> None:
    file = tmp_path / "imported.json"
    file.write_bytes(damage)
    imported = ImportedModels(file)
    assert imported.models() == ()
    assert (tmp_path / "imported.json.damaged").read_bytes() == damage
    one = Imported(tmp_path / "a.gguf", "a", "Jan")
    imported.add([one])
    assert ImportedModels(file).models() == (one,)


def test_list_that_cannot_be_read_or_written_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "imported.json").mkdir()
    imported = ImportedModels(tmp_path / "imported.json")
    assert imported.models() == ()
    with pytest.raises(ImportedError, match="cannot be read"):
        imported.add([Imported(tmp_path / "a.gguf", "a", "Jan")])
    with pytest.raises(ImportedError, match="not text"):
        ImportedModels(tmp_path / "other.json").add([Imported(Path("/caf\udce9.gguf"), "a", "Jan")])


def test_imported_split_model_counts_all_its_parts(tmp_path: Path) -> None:
    parts = [tmp_path / "theirs" / f"big-0000{number}-of-00002.gguf" for number in (1, 2)]
    parts[0].parent.mkdir()
    for part in parts:
        part.write_bytes(gguf({**CHAT, "split.count": u32(2)}))
    [entry] = list_models(tmp_path / "ours", ScanCache(), read_folder(tmp_path / "theirs"))
    assert (entry.path, entry.size_bytes) == (parts[0], sum(part.stat().st_size for part in parts))
