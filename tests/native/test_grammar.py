"""Grammar and sampler chain together: the law is "mask, then the chain", however it is reached."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from llama_cpp import llama_grammar

from native import sampler
from native.errors import GrammarError
from native.gbnf import check_gbnf
from native.grammar import Grammar, Ids
from native.model import Model
from native.sampler import Logits, SamplerChain, SamplerOptions
from tests.native.conftest import WIDE as N
from tests.tiny_gguf import BOS, EOS, IM_END, IM_START

LIST = 'root ::= "[" (item ("," " "? item)*)? "]"\nitem ::= [0-9]+ | "\\"" [^"\\x00-\\x1F]* "\\""'


def said(model: Model, grammar: Grammar, text: str) -> bool:
    """Whether the grammar allows this text, token by token; accepts as far as it does."""
    for token in model.tokenize(text, parse_special=False):
        if not grammar.allows(token):
            return False
        grammar.accept(token)
    return True


class Counted(Grammar):
    """Notes of how many tokens it was asked."""

    def __init__(self, model: Model, gbnf: str) -> None:
        super().__init__(model, gbnf)
        self.asked: list[int] = []

    def allowed(self, ids: Ids | None = None) -> npt.NDArray[np.bool_]:
        self.asked.append(N if ids is None else len(ids))
        return super().allowed(ids)


def ends(grammar: Grammar) -> bool:
    return grammar.allows(EOS)


def random_logits(seed: int, peak: float) -> Logits:
    """``peak``: how much likelier than the rest the tokens of a list are."""
    logits = np.random.default_rng(seed).standard_normal(N) * 3
    logits[4:260] += peak
    return logits.astype(np.float32)


# ---- the law


@pytest.mark.parametrize("so_far", ["", "[", "[12", '["', '["a b', '[1, "x"', "[1]"])
@pytest.mark.parametrize("peak", [-20.0, 0.0, 6.0])
def test_looking_at_the_likeliest_first_changes_nothing(
    wide: Model, so_far: str, peak: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the chain over all tokens that the grammar allows, for many kinds of truncation."""
    whole = 0
    rng = np.random.default_rng(int(peak) + 50)
    for trial in range(25):
        options = SamplerOptions(
            temperature=float(rng.uniform(0.5, 1.5)),
            top_k=int(rng.choice([0, 1, 5, 40, 500])),
            top_p=float(rng.choice([1.0, 0.95, 0.6])),
            min_p=float(rng.choice([0.0, 0.05, 0.3])),
            repeat_penalty=float(rng.choice([1.0, 1.3])),
            logit_bias={int(rng.integers(N)): -math.inf, int(rng.integers(4, 260)): 4.0},
        )
        logits = random_logits(trial, peak)
        results = []
        for favourites in ((), (256, 4096)):
            monkeypatch.setattr(sampler, "_FAVOURITES", favourites)
            grammar = Counted(wide, LIST)
            assert said(wide, grammar, so_far)
            with SamplerChain(N, options, grammar) as chain:
                chain.begin([10, 11, 12])
                grammar.asked.clear()
                ids, probs = chain.distribution(logits)
                order = np.lexsort((ids, -probs))
                results.append((ids[order].tolist(), probs[order], chain.best(logits)))
        (all_ids, all_probs, all_best), (few_ids, few_probs, few_best) = results
        kept = int((all_probs > 0).sum())
        assert few_ids[:kept] == all_ids[:kept] and not few_probs[kept:].any()
        np.testing.assert_allclose(few_probs[:kept], all_probs[:kept], rtol=1e-6)
        assert few_best == all_best
        whole += grammar.asked.count(N)
    if peak > 0:  # the short way was taken mostly: else both would be the same
        assert whole < 25


def test_a_likeliest_token_that_is_allowed_is_the_only_one_looked_at(wide: Model) -> None:
    grammar = Counted(wide, LIST)
    [bracket] = wide.tokenize("[", parse_special=False)
    with SamplerChain(N, SamplerOptions(), grammar) as chain:
        logits = np.zeros(N, dtype=np.float32)
        logits[bracket] = 1.0
        assert chain.best(logits) == bracket
    assert grammar.asked == [1]


# ---- where an answer may end


def test_an_answer_ends_where_the_grammar_may(wide: Model) -> None:
    with Grammar(wide, 'root ::= "ab" "c"?') as grammar:
        for text, may_end in (("a", False), ("b", True), ("c", True)):
            assert said(wide, grammar, text)
            assert [grammar.allows(token) for token in (EOS, IM_END)] == [may_end] * 2
        assert set(np.flatnonzero(grammar.allowed())) == {EOS, IM_END}
        grammar.accept(EOS)  # in the middle of a draft that goes on
        assert set(np.flatnonzero(grammar.allowed())) == {EOS, IM_END}


def test_other_end_tokens_end_it_there_too_and_are_no_text(wide: Model) -> None:
    """A marker that this file's vocabulary has as ordinary text."""
    marker = 300
    quoted = 'root ::= "\\"" [^"]* "\\""'
    with Grammar(wide, quoted) as plain:
        assert said(wide, plain, '"') and plain.allows(marker)
    with Grammar(wide, quoted, ends=frozenset([marker])) as grammar:
        assert said(wide, grammar, '"x') and not grammar.allows(marker)
        assert said(wide, grammar, '"') and grammar.allows(marker)
        grammar.accept(marker)


def test_tokens_that_show_no_text_are_never_allowed(wide: Model) -> None:
    quoted = 'root ::= "\\"" [^"]* "\\""'
    hidden = frozenset([BOS, EOS, IM_START])
    with Grammar(wide, quoted, hidden=hidden) as grammar:
        assert said(wide, grammar, '"x')
        assert not grammar.allows(BOS) and not grammar.allows(IM_START)
        assert said(wide, grammar, '"') and grammar.allows(EOS)


def test_a_model_without_an_end_token_takes_no_grammar() -> None:
    class Endless:
        end_of_generation: frozenset[int] = frozenset()

    with pytest.raises(GrammarError, match="no token that could end"):
        Grammar(Endless(), 'root ::= "a"')  # type: ignore[arg-type]


def test_a_token_that_is_not_allowed_is_an_error_and_not_the_end(wide: Model) -> None:
    [a, b] = wide.tokenize("ab", parse_special=False)
    with Grammar(wide, 'root ::= "ab"') as grammar:
        for wrong in (b, BOS, N - 1):
            with pytest.raises(GrammarError):
                grammar.accept(wrong)
        grammar.accept(a)
        grammar.accept(b)
    with pytest.raises(GrammarError):
        grammar.accept(a)


def test_characters_in_pieces(wide: Model) -> None:
    """One byte a token: the grammar follows inside a character too."""
    pieces = wide.tokenize("é漢😀", parse_special=False)
    assert len(pieces) == len("é漢😀".encode())
    with Grammar(wide, "root ::= [é] [一-鿿] [^a]") as grammar:
        assert said(wide, grammar, "é漢😀") and ends(grammar)
    with Grammar(wide, "root ::= [é] [a-z]") as grammar:
        assert said(wide, grammar, "é")
        assert not grammar.allows(pieces[2])


def test_a_dead_end_is_said(wide: Model) -> None:
    ban = {t: -math.inf for t in range(N) if wide.token_bytes(t).startswith(b"a")}
    for temperature in (0.0, 1.0):
        options = SamplerOptions(temperature=temperature, logit_bias=ban)
        with SamplerChain(N, options, Grammar(wide, 'root ::= "a"')) as chain:
            logits = random_logits(0, 0.0)
            with pytest.raises(GrammarError, match="nothing that it could say"):
                chain.best(logits) if chain.greedy else chain.distribution(logits)


# ---- texts that are no grammar, or one that llama.cpp does not survive

BAD = {
    "": "no rule called root",
    "# only a comment": "no rule called root",
    'x ::= "a"': "no rule called root",
    "root ::= foo": "foo is used but not defined",
    'root ::= "a': "line 1 cannot be read",
    'root ::= "a"\nb ::= @': "line 2 cannot be read at '@'",
    'root ::= "a\0b"': "NUL",
    'root ::= ("a"': "not closed",
    'root ::= ("a"\nb ::= "c"': "not closed",
    'root ::= "a")': "never opened",
    "root ::= *": "nothing before",
    'root ::= root "a" | "b"': "begins with itself",
    'root ::= e root "x" | "y"\ne ::= f\nf ::= "" | "z"': "begins with itself",
    'root ::= ("a"?) root "x" | "y"': "begins with itself",
    'root ::= a "x"\na ::= b\nb ::= "" a | "c"': "begins with itself",
    'root ::= "a"{5,2}': "at least 5 and at most 2",
    'root ::= "a"{3000}': "more than 2,000 times",
    'root ::= "a"{0,99999999999999999999}': "more than 2,000 times",
    "root ::= " + "(" * 20_000 + '"a"' + ")" * 20_000: "nested deeper",
    "root ::= r0\n"
    + "".join(f"r{i} ::= r{i + 1}\n" for i in range(9000))
    + 'r9000 ::= "a"': "begins with more",
    "root ::= " + " ".join(['("a" | "")'] * 1000): "too many parts in a row",
    'root ::= a{0,1000}\na ::= b{0,1000}\nb ::= "x"?': "too many parts in a row",
    "root ::= x0\n"
    + "".join(f"x{i} ::= x{i + 1} x{i + 1}\n" for i in range(25))
    + 'x25 ::= "a"?': "too many",
    "root ::= x0\n"
    + "".join(f'x{i} ::= x{i + 1} "a" | x{i + 1} "b"\n' for i in range(25))
    + 'x25 ::= "c"': "ways",
    'root ::= "a"\n' * 30_000: "characters long",
    "".join(f'r{i} ::= "a"\n' for i in range(11_000)): "rules and brackets",
    'root ::= "\\xZZ"': "llama.cpp cannot read it",
    'root ::= "\\q"': "llama.cpp cannot read it",
    "root ::= <nonsense>": "llama.cpp cannot read it",
    "root ::= <[99999999999999999999]>": "llama.cpp cannot read it",
    'root ::= ("")* "c"': "llama.cpp cannot read it",
    'root ::= "\ud800"': "characters that no text has",
}


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_a_bad_grammar_is_refused_in_one_line(wide: Model, text: str) -> None:
    with pytest.raises(GrammarError) as error:
        Grammar(wide, text)
    assert BAD[text] in str(error.value)
    assert "\n" not in str(error.value) and len(str(error.value)) < 300


GOOD = [
    'root ::= "a" root | "b"',
    'root ::= (("a"*)* (\'x\'{0})?)* "c"'.replace("'", '"'),
    'root ::= ws "{" ws "}" ws\nws ::= [ \\t\\n]*  # any space',
    "root ::=\n # first\n one |\n two\none ::= [^\\]\\-a-z] ( .\n | [\\[] )\r\ntwo ::= <s> !<[5]> | []",
    'root ::= "' + "a" * 3000 + '"',
    'root ::= "a"{2} "b"{2,} "c"{ 0 , 2000 } "\\"" "\\\\" "(" ["]',
    "root ::= " + " | ".join(f'"{i}x"' for i in range(3000)),
    "root ::= " + '("a" ' * 400 + ")?" * 400,
]


GOOD += [text for name, text in vars(llama_grammar).items() if name.endswith("_GBNF")]


@pytest.mark.parametrize("text", GOOD, ids=range(len(GOOD)))
def test_what_llama_cpp_can_take_is_not_refused(wide: Model, text: str) -> None:
    check_gbnf(text)
    with Grammar(wide, text) as grammar:
        assert grammar.allowed().any()


def test_a_rule_other_than_root_can_be_followed(wide: Model) -> None:
    with Grammar(wide, 'root ::= "a"\nother ::= "<" root', root="other") as grammar:
        assert said(wide, grammar, "<a") and ends(grammar)
