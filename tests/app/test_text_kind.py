"""Kinds of text: by hand, and on the recorded answers, whose workloads have names."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import paths
from app.text_kind import KINDS, TextKind, kind_of, repeated_share
from drafting.replay import Recording
from model_store.starter import starter_path
from native.model import Model

PYTHON = """class Stack:
    \"\"\"Holds what is put on it, and gives the last thing first.\"\"\"

    def push(self, item):
        # the end of the list is the top
        self.items.append(item)
        return len(self.items)
"""
JSON = """{
  "name": "Aldgate Mill",
  "lines": ["red", "blue"],
  "platforms": 2,
  "open": true
}
"""
POEM = """With the rain, in the evening,
for all who are waiting,
if only a while:
the river, the river."""


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Bread rises because yeast makes gas; the dough holds it.", "prose"),
        (
            "Two things matter here: the oven, and time. (Salt helps.)\n\nDo not open it = do not look.",
            "prose",
        ),
        (POEM, "prose"),
        ("", "prose"),
        ("Наступила осень. 今日はいい天気です。🙂", "prose"),
        (PYTHON, "code"),
        (f"Here it is:\n\n```python\n{PYTHON}```\nIt is short.", "code"),
        (f"```\n{PYTHON}```", "code"),
        ("SELECT client, count(*)\nFROM orders\nGROUP BY client;", "code"),
        ("int larger(int a, int b) {\n    return a > b ? a : b;\n}", "code"),
        ("```html\n<ul>\n  <li>one</li>\n</ul>\n```", "code"),
        (
            f"Call it like this: `f(x)`.\n\n{'It does what one expects of it. ' * 9}\n```c\nf(x);\n```",
            "prose",
        ),
        (JSON, "data"),
        (f"```json\n{JSON}```\nThat is the station.", "data"),
        (f"```\n{JSON}```", "data"),
        ("```yaml\nservice:\n  ports:\n    - 80\n```", "data"),
        ("```\nservice:\n  ports:\n    - name: http\n      port: 80\n```", "data"),
        ("- bread\n- cheese\n- pears\n", "data"),
        ("1. Amsterdam\n2. Berlin\n3. Cork", "data"),
        ("| river | km |\n|---|---|\n| Teln | 138 |", "data"),
        ("A1000;handle;zinc;6;8.31\nA1007;hinge;steel;60;7.78", "data"),
        (f"- {'A point that takes a whole paragraph to make. ' * 3}\n- {'And another. ' * 12}", "prose"),
    ],
)
def test_by_hand(text: str, kind: TextKind) -> None:
    assert kind_of(text, 0.0) == kind
    assert kind_of(text, 0.49) == kind
    assert kind_of(text, 0.5) == "repeated"


def test_shares_by_hand() -> None:
    prompt = list(range(100))
    assert repeated_share(range(20, 40), prompt) == 1.0
    assert repeated_share([*range(20, 30), *range(200, 210)], prompt) == 0.5
    assert repeated_share([*range(20, 27), 500, *range(40, 47)], prompt) == 0.0  # runs of seven
    # overlapping runs count once, and two runs that meet are two
    assert repeated_share([*range(9), *range(50, 58), *range(900, 903)], prompt) == pytest.approx(17 / 20)
    assert (
        repeated_share([], prompt) == repeated_share(range(5), range(5)) == repeated_share([1] * 9, []) == 0.0
    )
    assert repeated_share(range(5), range(5), n=5) == 1.0


@given(
    st.lists(st.integers(0, 3), max_size=40),
    st.lists(st.integers(0, 3), max_size=40),
    st.integers(1, 5),
)
def test_shares_are_what_counting_says(answer: list[int], prompt: list[int], n: int) -> None:
    covered = {
        i + k
        for i in range(len(answer) - n + 1)
        for j in range(len(prompt) - n + 1)
        if answer[i : i + n] == prompt[j : j + n]
        for k in range(n)
    }
    assert repeated_share(answer, prompt, n) == pytest.approx(len(covered) / max(1, len(answer)))


@given(st.text(), st.floats(0, 1))
def test_any_text_has_a_kind(text: str, repeated: float) -> None:
    assert kind_of(text, repeated) in KINDS


@pytest.mark.parametrize("unit", [";", "a ", "[", "(", '"', ", ", "=", "a: ", "- ", "| ", "\t", "x,"])
def test_long_lines_take_no_long_time(unit: str) -> None:
    began = time.process_time()
    kind_of(unit * (1_000_000 // len(unit)), 0.0)
    kind_of("\n".join([unit * 400] * 200), 0.0)
    assert time.process_time() - began < 2.0


@pytest.fixture(scope="module")
def answers() -> Iterator[list[tuple[str, TextKind]]]:
    """Workload and kind of each recorded answer."""
    starter = starter_path()
    assert starter is not None, "make test installs the starter's carrier"
    found = []
    with Model(starter, vocab_only=True) as model:
        for file in sorted((paths.assets_dir() / "replay").glob("starter-*.json")):
            for trace in msgspec.json.decode(Path(file).read_bytes(), type=Recording).traces:
                text = b"".join(model.token_bytes(token) for token in trace.answer).decode("utf-8", "replace")
                found.append((trace.workload, kind_of(text, repeated_share(trace.answer, trace.prompt))))
    yield found


def test_recorded_answers_are_what_their_workload_says(answers: list[tuple[str, TextKind]]) -> None:
    """A small model does not always do what it is asked: its summaries copy, its first turns are new."""
    table: dict[str, Counter[TextKind]] = {}
    for workload, kind in answers:
        table.setdefault(workload, Counter())[kind] += 1
    named: dict[str, TextKind] = {
        "edit": "repeated",
        "copy": "repeated",
        "refactor": "repeated",
        "code": "code",
        "json": "data",
        "chat": "prose",
    }
    right = {workload: table[workload][kind] / table[workload].total() for workload, kind in named.items()}
    assert min(right.values()) >= 0.6, table
    assert sum(table[w][kind] for w, kind in named.items()) >= 0.75 * sum(table[w].total() for w in named), (
        table
    )
    assert table["code"].total() == table["code"]["code"] and table["summarise"]["code"] == 0, table
    assert set(table["summarise"]) <= {"prose", "repeated"}, table
