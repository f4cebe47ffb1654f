"""The numbers of an answer that was written in several goes."""

from __future__ import annotations

import msgspec

from app.chats.joined_stats import joined
from drafting.statistics import DrafterCounts, Statistics


def test_everything_but_the_prompt_adds_up() -> None:
    """Fields that are still to be invented too."""
    counts = DrafterCounts(3, 9, 5, [3, 3, 3], [3, 2], 8, 0.1, 0.2, 0.3, 0.4)
    values = {
        field.name: 2.5 if field.type in ("float", float) else 2
        for field in msgspec.structs.fields(Statistics)
        if field.name not in ("by_drafter", "undrafted")
    }
    one = Statistics(**values, by_drafter={"cache": counts}, undrafted={"none": 2})  # type: ignore[arg-type]
    both = msgspec.to_builtins(joined(one, one))
    prompt = ("prompt_tokens", "reused_tokens", "prefill_s")
    for name, value in msgspec.to_builtins(one).items():
        if name in prompt:
            assert both[name] == value, name
        elif not isinstance(value, dict):
            assert both[name] == 2 * value, name
    assert both["undrafted"] == {"none": 4}
    for name, value in msgspec.to_builtins(counts).items():
        double = [2 * n for n in value] if isinstance(value, list) else 2 * value
        assert both["by_drafter"]["cache"][name] == double, name


def test_what_is_not_known_of_a_part_is_not_known_of_the_whole() -> None:
    known, unknown = Statistics(plain_s=1.0, decode_s=1.0), Statistics(decode_s=1.0)
    assert joined(known, unknown).speedup is None
    assert joined(unknown, known).speedup is None
    assert joined(known, known).plain_s == 2.0


def test_drafters_and_reasons_of_either_part_are_there() -> None:
    first = Statistics(by_drafter={"cache": DrafterCounts(drafted=1)}, undrafted={"a": 1})
    then = Statistics(by_drafter={"mod": DrafterCounts(drafted=2)}, undrafted={"b": 2})
    both = joined(first, then)
    assert {name: counts.drafted for name, counts in both.by_drafter.items()} == {"cache": 1, "mod": 2}
    assert both.undrafted == {"a": 1, "b": 2}
    assert list(first.by_drafter) == ["cache"]
