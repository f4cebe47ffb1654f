"""Formulas as readable text, and which dollars are formulas at all."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ui.test_markdown_positions import read, spans
from ui.chat.latex_text import Run, read_formula
from ui.chat.markdown_blocks import TextBlock
from ui.chat.markdown_stream import Live, MarkdownStream


def written(source: str) -> str:
    """Raised and lowered text in brackets with a mark."""
    return "".join(
        f"^[{run.text}]" if run.script > 0 else f"_[{run.text}]" if run.script < 0 else run.text
        for run in read_formula(f"${source}$")
    ).replace("][", "")


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (r"x^2 + y_{i}^{n}", "x^[2] + y_[i]^[n]"),
        (r"\frac{a+1}{b}", "(a + 1)/b"),
        (r"\frac{1}{2a}", "1/(2a)"),
        (r"x = \frac{-b \pm \sqrt{b^2-4ac}}{2a}", "x = (−b ± √(b^[2] − 4ac))/(2a)"),
        (r"\frac{n(n+1)}{2}", "n(n + 1)/2"),
        (r"\sqrt[3]{x}", "∛x"),
        (r"\alpha\beta \le \infty", "αβ ≤ ∞"),
        (r"\mathbb{R}^n \to \mathcal{L}", "ℝ^[n] → ℒ"),
        (r"\lim_{x} \frac{\sin x}{x}", "lim_[x] (sin x)/x"),
        (r"\left( \frac{1}{2} \right)", "(1/2)"),
        (r"\left. x \right|_{0}", "x|_[0]"),
        (r"\hat{x}, \vec{v}", "x̂, v⃗"),
        (r"\text{if } x > 0", "if x > 0"),
        (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "(1 2; 3 4)"),
        (r"\begin{aligned}a&=b\\c&=d\end{aligned}", "a = b\u2028c = d"),
        (r"\begin{cases}1 & x>0 \\ 0 & \text{else}\end{cases}", "{ 1  x > 0; 0  else"),
        (r"\operatorname{softmax}(x)", "softmax(x)"),
        (r"\binom{n}{k}", "(^[n]_[k])"),
        (r"x \not= y \notin A", "x ≠ y ∉ A"),
        (r"a \equiv b \pmod{n}", "a ≡ b  (mod n)"),
        (r"f'(x) = -x", "f′(x) = −x"),
        (r"\boxed{42}", "42"),
        (r"\unheardof{x}", r"\unheardofx"),
        (r"e^{x^{2}}", "e^[x]^[^]^[2]"),
    ],
)
def test_it_reads_as_people_write_it(source: str, shown: str) -> None:
    assert written(source) == shown


@pytest.mark.parametrize("source", [r"\frac{a}", r"\mathbf{open", "x^", "{" * 500, "}", r"\begin{aligned}"])
def test_what_cannot_be_read_is_given_as_it_is_written(source: str) -> None:
    assert read_formula(f"${source}$") == (Run(f"${source}$", 0),)


SCRAPS = [
    "\\frac", "{", "}", "^", "_", "x", "2", "\\alpha", "\\sqrt", "[", "]", "&", "\\\\", "\\left", "(", ")",
    "\\text", " ", "\\begin{cases}", "\\end{cases}", "\\not", "'", "%", "#", "~", "\\", "-", "=",
    "\\begin{x}", "$", "é",
]  # fmt: skip
TEX = st.lists(st.sampled_from(SCRAPS), max_size=25)


@settings(max_examples=300, deadline=None)
@given(TEX)
def test_any_latex_gives_some_text_whose_places_are_in_it(parts: list[str]) -> None:
    source = f"${''.join(parts)}$"
    runs = read_formula(source)
    assert runs
    for run in runs:
        assert -1 <= run.at < len(source) and run.text


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        ("$x^2$ and $y$", ["$x^2$", "$y$"]),
        (r"\(a\) and \[b\]", [r"\(a\)", r"\[b\]"]),
        ("$$x$$ in a line", ["$$x$$"]),
        ("$$\nx\n= y\n$$", ["$$\nx\n= y\n$$"]),
        ("words\n\\[\nx\n\\]\nmore", ["\\[\nx\n\\]"]),
        ("- item\n  $$\n  x\n  $$", ["$$\nx\n$$"]),
        ("> $$x$$", ["$$x$$"]),
        (r"\(x\)\(x\)", [r"\(x\)", r"\(x\)"]),
        (r"\(x\)\(x\)", [r"\(x\)", r"\(x\)"]),
        ("| $a|b$ | $c$ |\n|---|---|---|\n", ["$c$"]),  # a bar ends a cell, whatever is in it
        ("It costs $5 and $6.", []),
        ("$5-$6, US$5 or 10$, $5 or 10$", []),
        ("`$x$` and $HOME/$USER, $PATH and $HOME", []),
        ("```\n$x$ $$y$$\n```", []),
        (r"\$x\$ and $ x $", []),
        ("$$a$$ and $$b$$", ["$$a$$", "$$b$$"]),
        ("$$\n\n$$\n\n$$ $$", []),
        ("$a paid sum of many words$", []),
    ],
)
def test_money_and_code_are_no_formulas(text: str, formulas: list[str]) -> None:
    found: list[str] = []
    for span in spans(read(text, [])):
        if span.formula is not None and (not found or found[-1] is not span.formula):
            found.append(span.formula)
    assert found == formulas


@pytest.mark.parametrize("text", [r"So $\frac{a_1 * b_1}{c_2 * d}$ holds.", "\\[\n\\sum_{i} *x*\n= y_1\n\\]"])
def test_half_a_formula_stands_as_it_is_written_and_turns_into_one_once(text: str) -> None:
    stream = MarkdownStream()
    seen: list[bool] = []
    for character in text:
        stream.feed(character)
        for change in stream.changes():
            assert isinstance(change, Live)
            for block in change.blocks:
                assert isinstance(block, TextBlock) and block.kind != "heading"
                assert not any(span.italic and span.formula is None for span in block.spans)
                seen.append(any(span.formula is not None for span in block.spans))
    assert seen == sorted(seen) and seen[-1]  # never back again
