"""Penalties, bias and grammar on the command line, in the settings and in messages."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import msgspec
import pytest

from app.cli import UsageError, _parser
from app.commands.chat import _grammar, run_chat
from app.protocol import (
    ChatMessage,
    Gbnf,
    Generate,
    JsonSchema,
    SamplingParams,
    decode_to_worker,
    encode,
)
from app.settings import Settings


def parse(*words: str) -> Namespace:
    return _parser().parse_args(["chat", "hi", *words])


def test_what_is_given_and_what_is_not() -> None:
    given = parse(
        *("--repeat-penalty", "1.3", "--frequency-penalty", "-0.5", "--presence-penalty", "2"),
        *("--logit-bias", "5=-100", "--logit-bias", "7=2.5"),
    )
    assert (given.repeat_penalty, given.frequency_penalty, given.presence_penalty) == (1.3, -0.5, 2.0)
    assert given.logit_bias == [(5, -100.0), (7, 2.5)]
    nothing = parse()
    assert nothing.repeat_penalty is nothing.logit_bias is nothing.json_schema is None


@pytest.mark.parametrize(
    "words",
    [
        ("--repeat-penalty", "0"),
        ("--repeat-penalty", "nan"),
        ("--frequency-penalty", "3"),
        ("--presence-penalty", "much"),
        ("--logit-bias", "5"),
        ("--logit-bias", "a=1"),
        ("--logit-bias", "-1=1"),
        ("--logit-bias", "5=101"),
        ("--json-schema", "{}", "--grammar-file", "x.gbnf"),
    ],
)
def test_bad_options_are_one_line_and_status_2(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        parse(*words)
    assert end.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_schema_is_a_text_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text('{"type": "integer"}', encoding="utf-8")
    assert _grammar(parse("--json-schema", ' {"type": "null"}')) == JsonSchema(' {"type": "null"}')
    assert _grammar(parse("--json-schema", str(file))) == JsonSchema('{"type": "integer"}')
    gbnf = tmp_path / "a.gbnf"
    gbnf.write_text('root ::= "é"', encoding="utf-8")
    assert _grammar(parse("--grammar-file", str(gbnf))) == Gbnf('root ::= "é"')
    assert _grammar(parse()) is None


def test_a_file_that_cannot_be_read_is_said_before_anything_starts(tmp_path: Path) -> None:
    binary = tmp_path / "b.gbnf"
    binary.write_bytes(b"root ::= \xff")
    for words, reason in [
        (("--json-schema", str(tmp_path / "gone.json")), "No such file"),
        (("--grammar-file", str(tmp_path)), "directory"),
        (("--grammar-file", str(binary)), "not text"),
    ]:
        with pytest.raises(UsageError, match=reason):
            run_chat(parse(*words))


def test_settings_hold_penalties() -> None:
    settings = Settings(repeat_penalty=1.2, frequency_penalty=0.5, presence_penalty=-0.5, penalty_last_n=-1)
    params = settings.sampling_params()
    assert (params.repeat_penalty, params.frequency_penalty, params.presence_penalty) == (1.2, 0.5, -0.5)
    assert params.penalty_last_n == -1
    assert Settings().sampling_params() == SamplingParams()


def test_messages_carry_them() -> None:
    for grammar in (None, Gbnf("root ::= [a]"), JsonSchema()):
        request = Generate(
            request_id=1,
            messages=(ChatMessage("user", "hi"),),
            sampling=SamplingParams(logit_bias={3: -100.0, 70_000: 1.5}),
            grammar=grammar,
        )
        assert decode_to_worker(encode(request)) == request
    assert msgspec.json.decode(b'{"type":"json_schema"}', type=JsonSchema) == JsonSchema()


@pytest.mark.parametrize(
    "bad",
    [
        {"repeat_penalty": 0.0},
        {"frequency_penalty": float("inf")},
        {"presence_penalty": float("nan")},
        {"penalty_last_n": -2},
        {"logit_bias": {5: 101.0}},
        {"logit_bias": {5: float("nan")}},
        {"logit_bias": dict.fromkeys(range(2000), 1.0)},
    ],
)
def test_values_out_of_bounds_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(bad, SamplingParams, str_keys=False)
