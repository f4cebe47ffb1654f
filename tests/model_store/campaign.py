"""Downloads many small files from a Hub that does everything wrong, and looks at what is left.

    python -m tests.model_store.campaign --downloads 1000 --seed 1

It must hold that nothing wrong or partial is ever seen in the models folder, that every job ends complete,
and that nothing else is left behind. The programs that download are killed again and again, at any time
and right before a change of a file; now and then two of them work on the same files.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from model_store.download_folder import DownloadFolder
from model_store.library import list_models
from model_store.local_path import HIDDEN
from model_store.manifest import Manifests
from tests.model_store.hub_content import FAULTS
from tests.model_store.local_hub import Fault, LocalHub
from tests.model_store.raw_gguf import CHAT, RawTensor, gguf

ROOT = Path(__file__).resolve().parents[2]
_BATCH = 40  # downloads of one program
_MOST_STARTS = 40  # of programs for one batch
_DISK = 4 << 20  # bytes of the small one


@dataclass
class Outcome:
    """What happened. ``violations`` must be empty."""

    downloads: int = 0
    complete: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    programs: int = 0
    killed: int = 0
    killed_at_a_change: int = 0
    pairs: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    disk_full: int | None = None
    looks: int = 0
    seconds: float = 0.0
    violations: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        disk = "not possible here" if self.disk_full is None else str(self.disk_full)
        lines = [
            f"downloads {self.downloads}, complete {self.complete}, in {self.seconds:.0f} s",
            f"faults {self.faults.total()}: {', '.join(f'{k} {n}' for k, n in sorted(self.faults.items()))}",
            f"programs {self.programs}, killed {self.killed}, of these right before a change of a file "
            f"{self.killed_at_a_change}; two programs on the same files {self.pairs} times",
            f"jobs that a person had to resume: {dict(self.failures) or 'none'}",
            f"disk full and resumed: {disk}",
            f"looks at the folder {self.looks}, violations {len(self.violations)}",
        ]
        return "\n".join([*lines, *self.violations[:20]])


class Watcher:
    """Looks at the models folder all the time: whatever is listed must be whole and right."""

    def __init__(self, models: Path, outcome: Outcome) -> None:
        self._models = models
        self._outcome = outcome
        self._expected: dict[Path, str] = {}
        self._seen: dict[Path, tuple[int, int, int]] = {}
        self._end = threading.Event()
        self._looking = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="watcher")

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._end.set()
        self._thread.join()

    def expect(self, path: Path, content: bytes) -> None:
        self._expected[path] = hashlib.sha256(content).hexdigest()

    def look(self) -> None:
        with self._looking:
            self._look()

    def _look(self) -> None:
        self._outcome.looks += 1
        for entry in list_models(self._models):
            if entry.problem is not None:
                self._outcome.violations.append(f"{entry.path} is listed: {entry.problem}")
        for path in self._models.rglob("*"):
            if HIDDEN in path.parts or not path.is_file():
                continue
            status = path.stat()
            known = (status.st_ino, status.st_mtime_ns, status.st_size)
            if self._seen.get(path) == known:
                continue
            self._seen[path] = known
            if hashlib.sha256(path.read_bytes()).hexdigest() != self._expected.get(path):
                self._outcome.violations.append(f"{path} is there and is wrong")

    def _run(self) -> None:
        while not self._end.wait(0.05):
            self.look()


def run(downloads: int, seed: int) -> Outcome:
    """The campaign; the same seed scripts the same faults. When processes are killed is left to chance."""
    source = random.Random(seed)
    outcome = Outcome(downloads=downloads)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="campaign") as folder, LocalHub() as hub:
        models = Path(folder) / "models"
        models.mkdir()
        with Watcher(models, outcome) as watcher:
            repos = _make_repositories(hub, source, downloads, models, watcher, outcome)
            for begin in range(0, len(repos), _BATCH):
                _download(hub, models, repos[begin : begin + _BATCH], source, outcome, watcher)
        _check(hub, models, repos, outcome)
        _fill_a_disk(hub, Path(folder), source, max(1, downloads // 100), outcome)
    outcome.seconds = time.monotonic() - started
    return outcome


def _make_repositories(
    hub: LocalHub, source: random.Random, downloads: int, models: Path, watcher: Watcher, outcome: Outcome
) -> list[str]:
    """Repositories of one file, or two: a model and its drafter."""
    repos: list[str] = []
    made = 0
    while made < downloads:
        count = min(source.choice((1, 1, 2)), downloads - made)
        repo = f"o/{len(repos):04}-GGUF"
        files = {f"{made + index:04}.gguf": _model(source) for index in range(count)}
        hub.add(repo, dict(files))
        for path, content in files.items():
            watcher.expect(models / repo / path, content)
            faults = [_fault(source) for _ in range(source.choice((0, 1, 1, 2, 3, 5)))]
            # Of damage, one retry is made; more takes a person.
            while sum(fault.kind == "flip" for fault in faults) > 1 and source.random() < 0.7:
                faults.remove(next(fault for fault in faults if fault.kind == "flip"))
            hub.script(repo, path, *faults)
            outcome.faults.update(fault.kind for fault in faults)
        repos.append(repo)
        made += count
    return repos


def _model(source: random.Random) -> bytes:
    """A whole model of up to 300 kB, of random weights."""
    weights = 4 * source.choice((8, 100, 5000, 20_000, 75_000))
    head = gguf(CHAT, (RawTensor("token_embd.weight", (weights // 4,), 0, None, weights),))
    return head[:-weights] + source.randbytes(weights)


def _fault(source: random.Random) -> Fault:
    kind = source.choice(FAULTS)
    seconds = 0.8 if kind == "stall" else float(kind == "status_429" and source.random() < 0.2)
    return Fault(kind, source.random(), seconds)


def _download(
    hub: LocalHub,
    models: Path,
    repos: list[str],
    source: random.Random,
    outcome: Outcome,
    watcher: Watcher,
) -> None:
    """Start programs, and kill most of them, until one says that all is there."""
    for attempt in range(_MOST_STARTS):
        last = attempt >= 3
        crash = 0 if last or source.random() < 0.3 else source.randint(1, 250)
        count = 2 if source.random() < 0.15 else 1
        outcome.pairs += count - 1
        programs = [_start(hub, models, crash, repos) for _ in range(count)]
        outcome.programs += count
        if not crash and not last:
            time.sleep(source.uniform(0.3, 2.5))
            for program in programs:
                program.kill()
        codes = []
        for program in programs:
            said, _ = program.communicate(timeout=120)
            codes.append(program.returncode)
            outcome.failures.update(
                line.split()[-1] for line in said.splitlines() if line.startswith("failed")
            )
        watcher.look()
        outcome.killed += sum(code < 0 for code in codes)
        outcome.killed_at_a_change += sum(code < 0 for code in codes) if crash else 0
        if all(code == 0 for code in codes):
            return
    outcome.violations.append(f"{repos[0]} to {repos[-1]} did not end complete")


def _start(hub: LocalHub, models: Path, crash: int, repos: list[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.model_store.campaign_worker", str(models), hub.url, str(crash)]
    return subprocess.Popen([*command, *repos], cwd=ROOT, stdout=subprocess.PIPE, text=True)


def _check(hub: LocalHub, models: Path, repos: list[str], outcome: Outcome) -> None:
    """All files are there with their manifests, and nothing else."""
    manifests = Manifests(models)
    expected: set[Path] = set()
    for repo in repos:
        repository = hub.repositories[repo]
        for path, file in repository.commits[repository.sha].items():
            place = models / repo / path
            expected.add(place)
            manifest = manifests.read(place)
            if not place.is_file():
                outcome.violations.append(f"{place} is not there")
            elif manifest is None or manifest.sha256 != file.sha256:
                outcome.violations.append(f"{place} has no right manifest")
            else:
                outcome.complete += 1
    DownloadFolder(models).sweep(older_than=0)
    there = {path for path in models.rglob("*") if path.is_file()}
    manifest_files = {models / HIDDEN / "manifests" / f"{path.relative_to(models)}.json" for path in expected}
    outcome.violations.extend(f"{path} is left over" for path in sorted(there - expected - manifest_files))


def _fill_a_disk(hub: LocalHub, folder: Path, source: random.Random, count: int, outcome: Outcome) -> None:
    """Downloads to a disk that is full in the middle of them."""
    repos = [f"full/{number}-GGUF" for number in range(count)]
    for repo in repos:
        hub.add(repo, {f"{repo[5:]}.gguf": _model(source) + bytes(1 << 20)})
        hub.file(repo, f"{repo[5:]}.gguf").piece_pause = 0.03
    small = folder / "small"
    small.mkdir()
    command = [sys.executable, "-m", "tests.model_store.disk_full_worker", str(small / "models"), hub.url]
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_DISK}", "tmpfs", str(small)]
    # A mount of its own, seen by nobody else, which ends with the program; without rights, in a namespace
    script = f'{" ".join(mount)} && mkdir "$0" && exec "$@"'
    namespace = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
    if shutil.which("unshare") is None:
        return
    possible = subprocess.run([*namespace, *mount], capture_output=True, check=False)
    if possible.returncode:
        return
    done = subprocess.run(
        [*namespace, "sh", "-c", script, str(small / "models"), *command, *repos],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60 + 5 * count,
        check=False,
    )
    outcome.disk_full = sum(
        line.endswith(": disk_full, 0 visible, then complete") for line in done.stdout.splitlines()
    )
    if done.returncode or outcome.disk_full != count:
        outcome.violations.append(f"on a full disk: {done.stdout}{done.stderr}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--downloads", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    outcome = run(options.downloads, options.seed)
    print(outcome)
    return 1 if outcome.violations or outcome.complete != outcome.downloads else 0


if __name__ == "__main__":
    sys.exit(main())
