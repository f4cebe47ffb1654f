"""JSON schemas as grammars: what they allow is JSON that fits, and what they do not enforce is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from native.errors import GrammarError
from native.gbnf import check_gbnf
from native.grammar import Grammar
from native.json_schema import schema_to_gbnf
from native.model import Model
from native.sampler import SamplerChain, SamplerOptions
from tests.native.conftest import WIDE as N
from tests.tiny_gguf import BOS, EOS, IM_END, IM_START

Check = Callable[[Any], bool]
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "age": {"type": "integer"},
        "é": {"type": "null"},
    },
    "required": ["name", "é"],
}
TREE = {
    "$ref": "#/$defs/value",
    "$defs": {
        "value": {
            "type": "object",
            "properties": {
                "char": {"$ref": "#/$defs/char"},
                "next": {"anyOf": [{"$ref": "#/$defs/value"}, {"type": "null"}]},
            },
            "required": ["char", "next"],
        },
        "char": {"enum": ["x", 'say "hi"', "back\\slash", "line\nend", "é漢😀"]},
    },
}


def is_tree(value: Any) -> bool:
    enum = TREE["$defs"]["char"]["enum"]  # type: ignore[index]
    return (
        set(value) == {"char", "next"}
        and value["char"] in enum
        and (value["next"] is None or is_tree(value["next"]))
    )


SCHEMAS: list[tuple[Any, Check]] = [
    ({}, lambda v: isinstance(v, dict)),
    ({"type": "object"}, lambda v: isinstance(v, dict)),
    ({"type": "string"}, lambda v: isinstance(v, str)),
    ({"type": ["integer", "null"]}, lambda v: v is None or isinstance(v, int)),
    (
        {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 4},
        lambda v: 2 <= len(v) <= 4,
    ),
    (
        PERSON,
        lambda v: (
            {"name", "é"} <= set(v) <= {"name", "é", "age"} and len(v["name"]) <= 8 * 4 and v["é"] is None
        ),
    ),
    (TREE, is_tree),
    ({"const": {"a": [1, "\t\"'"]}}, lambda v: v == {"a": [1, "\t\"'"]}),
    (
        {"type": "string", "pattern": "^[^a]{3}.x|y+$"},
        lambda v: "a" not in v[:3] if v[-1] == "x" else set(v) == {"y"},
    ),
    ({"type": "string", "format": "date"}, lambda v: len(v) == 10),
    ({"type": "number"}, lambda v: isinstance(v, int | float)),
    ({"additionalProperties": {"type": "integer"}}, lambda v: all(isinstance(x, int) for x in v.values())),
]


def random_text(model: Model, gbnf: str, seed: int) -> str:
    """What random logits say under a grammar; quotes and ends are likely, so that it ends."""
    rng = np.random.default_rng(seed)
    likely = model.tokenize('"}]0', parse_special=False)
    said: list[int] = []
    with SamplerChain(
        N, SamplerOptions(temperature=1.0, top_k=40), Grammar(model, gbnf, hidden=frozenset([BOS, IM_START]))
    ) as chain:
        while len(said) < 2000:
            logits = rng.standard_normal(N).astype(np.float32)
            logits[likely] += rng.choice([0.0, 8.0])
            logits[[EOS, IM_END]] += 20
            ids, probs = chain.distribution(logits)
            token = int(rng.choice(ids, p=probs))
            if token in (EOS, IM_END):
                # llama.cpp takes any byte for a character's first; the answer shows such as U+FFFD.
                return b"".join(map(model.token_bytes, said)).decode(errors="replace")
            chain.accept(token)
            said.append(token)
    raise AssertionError("no end in sight")


@pytest.mark.parametrize(("schema", "fits"), SCHEMAS, ids=[str(schema)[:40] for schema, _ in SCHEMAS])
def test_every_text_under_a_schema_is_json_that_fits_it(wide: Model, schema: Any, fits: Check) -> None:
    gbnf, unenforced = schema_to_gbnf(json.dumps(schema))
    assert not unenforced
    for seed in range(12):
        text = random_text(wide, gbnf, seed)
        assert fits(json.loads(text)), text


def test_keywords_that_are_not_enforced_are_told() -> None:
    for schema, told in [
        ({"type": "integer", "minimum": 3, "title": "a"}, {"minimum"}),
        ({"type": "object", "required": ["n"]}, {"required"}),
        (
            {"properties": {"n": {"format": "email", "type": "string"}}, "additionalProperties": True},
            {"format", "additionalProperties"},
        ),
        ({"anyOf": [{"type": "null"}], "properties": {}}, {"properties"}),
        ({"type": "array", "minItems": 2}, {"minItems"}),
        ({"type": "string", "pattern": "^a$", "maxLength": 3}, {"maxLength"}),
        (
            {"type": "object", "properties": {"a": {"type": "integer", "multipleOf": 2}}, "required": ["a"]},
            {"multipleOf"},
        ),
    ]:
        assert set(schema_to_gbnf(json.dumps(schema))[1]) == told, schema


BAD_SCHEMAS = {
    "": "not JSON",
    "{": "not JSON",
    "[" * 100_000: "characters long",
    "[" * 5000: "not JSON",
    "[]": "not a JSON object",
    "true": "not a JSON object",
    '{"type": "foo"}': "cannot be converted",
    '{"properties": 5}': "cannot be converted",
    '{"$ref": "https://example.com/schema"}': "leads out of it",
    '{"$ref": "#/$defs/missing"}': "leads nowhere",
    '{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}': "begins with itself",
    '{"$ref": "#"}': "begins with itself",
    '{"type": "string", "maxLength": 100000000}': "maxLength must be",
    '{"type": "array", "items": {}, "minItems": -1}': "minItems must be",
    '{"type": "array", "items": {}, "minItems": "2"}': "minItems must be",
    '{"type": "string", "pattern": "^a{1000000000}$"}': "400 times",
    '{"type": "string", "pattern": "a"}': "must begin with ^",
    '{"type": "string", "pattern": "^\\"$"}': "quote",
    '{"items": ' * 600 + "{}" + "}" * 600: "nested too deep",
}


@pytest.mark.parametrize("text", BAD_SCHEMAS, ids=range(len(BAD_SCHEMAS)))
def test_a_bad_schema_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(GrammarError) as error:
        check_gbnf(schema_to_gbnf(text)[0])
    assert BAD_SCHEMAS[text] in str(error.value)
    assert "\n" not in str(error.value) and len(str(error.value)) < 300
