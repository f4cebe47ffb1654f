"""LaTeX formulas as readable text: symbols by name, scripts raised and lowered, fractions on one line."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ui.chat.latex_names import (
    ACCENTS,
    ALPHABETS,
    BRACKETS,
    IGNORED,
    LARGE,
    LINES,
    NEGATED,
    OPERATORS,
    PLAIN,
    ROOTS,
    ROWS,
    SPACES,
    SYMBOLS,
    TEXT,
    WORDS,
)
from ui.chat.latex_runs import (
    Run,
    accented,
    bracketed,
    ends_operand,
    has_operator,
    joined,
    length,
    lettered,
    put_between,
    trimmed,
    wants_room,
)

if TYPE_CHECKING:
    from pylatexenc.latexwalker import LatexNode

_NESTING = 40
_LONGEST = 4000


@functools.lru_cache(maxsize=1024)
def read_formula(source: str) -> tuple[Run, ...]:
    """``source`` with its marks, such as ``$x^2$``. What cannot be read is given as it is written."""
    mark = 1 if source[:1] == "$" and source[1:2] != "$" else 2
    inner = source[mark : len(source) - mark]
    try:
        runs = _Reader(mark).read(_parse(inner))
    except Exception:  # whatever a stranger's LaTeX does to the parser, its source can still be read
        return (Run(source, 0),)
    return tuple(joined(runs)) or (Run(source, 0),)


def load() -> None:
    """Import the parser now. It takes tens of milliseconds, which the first formula need not wait for."""
    _grammar()
    _names()


def _parse(source: str) -> list[LatexNode]:
    from pylatexenc.latexwalker import LatexWalker

    if len(source) > _LONGEST or _depth(source) > _NESTING:
        raise ValueError("too long, or nested too deeply")
    walker = LatexWalker(source, latex_context=_grammar(), tolerant_parsing=False)
    nodes, _, _ = walker.get_latex_nodes(parsing_state=walker.make_parsing_state(in_math_mode=True))
    return list(nodes)


def _depth(source: str) -> int:
    depth = most = 0
    for character in source:
        depth += (character == "{") - (character == "}")
        most = max(most, depth)
    return max(most, source.count("\\begin"))


@functools.cache
def _grammar() -> Any:
    """What takes how many arguments, beyond what pylatexenc knows."""
    from pylatexenc.latexwalker import get_default_latex_context_db
    from pylatexenc.macrospec import EnvironmentSpec, std_macro

    table = get_default_latex_context_db()
    two = ("frac", "dfrac", "tfrac", "cfrac", "binom", "dbinom", "tbinom", "overset", "underset", "stackrel")
    one = (
        *ALPHABETS, *ACCENTS, *LINES, *(TEXT - {"operatorname"}), "boxed", "pmod", "overbrace",
        "underbrace", "tag", "phantom", "hphantom", "vphantom", "label", "color", "xrightarrow", "xleftarrow",
    )  # fmt: skip
    table.add_context_category(
        "formulas",
        [
            *(std_macro(name, False, 2) for name in two),
            *(std_macro(name, False, 1) for name in one),
            std_macro("operatorname", "*{"),
            std_macro("textcolor", False, 2),
            *(std_macro(name, False, 0) for name in ("not", "left", "right", "middle", "\\")),
        ],
        [EnvironmentSpec(name) for name in (*BRACKETS, *ROWS)],
        prepend=True,
    )
    return table


@functools.cache
def _names() -> Any:
    from pylatexenc.latex2text import get_default_latex_context_db

    return get_default_latex_context_db()


@functools.cache
def _symbol(name: str) -> str | None:
    if name in SYMBOLS:
        return SYMBOLS[name]
    spec = _names().get_macro_spec(name)
    text = getattr(spec, "simplify_repl", None)
    return text if isinstance(text, str) and text and "%" not in text else None


class _Atom(Struct):
    """One character of the source, or a command or group with its arguments."""

    at: int
    character: str = ""
    node: Any = None

    @property
    def macro(self) -> str:
        return str(getattr(self.node, "macroname", "") or "")


class _Reader:
    def __init__(self, shift: int) -> None:
        self._shift = shift

    def read(self, nodes: Sequence[LatexNode], script: int = 0, upright: bool = False) -> list[Run]:
        return self._read_atoms(list(self._atoms(nodes)), script, upright)

    def _atoms(self, nodes: Sequence[LatexNode]) -> Iterator[_Atom]:
        for node in nodes:
            chars = getattr(node, "chars", None) or getattr(node, "specials_chars", None)
            if node.nodeType().__name__ == "LatexCommentNode":
                continue
            if chars is not None:
                for index, character in enumerate(chars):
                    yield _Atom(node.pos + index, character)
            else:
                yield _Atom(node.pos, node=node)

    def _read_atoms(self, atoms: Sequence[_Atom], script: int, upright: bool) -> list[Run]:
        runs: list[Run] = []
        index = 0
        while index < len(atoms):
            atom = atoms[index]
            index += 1
            if atom.character.isspace():
                continue
            if atom.character not in ("^", "_") and wants_room(runs):
                runs.append(Run(" ", script=script))
            if atom.character in ("^", "_"):
                while index < len(atoms) and atoms[index].character.isspace():
                    index += 1
                if index == len(atoms):
                    raise ValueError("a script without anything in it")
                self._script(runs, atom, atoms[index], script)
                index += 1
            elif atom.macro in ("left", "right", "middle", "not") and index < len(atoms):
                after = atoms[index]
                index += 1
                if atom.macro == "not":
                    sign = "".join(run.text for run in self._atom(after, script, upright, runs)).strip()
                    self._operator(runs, NEGATED.get(sign, sign + "\u0338"), atom.at, script)
                elif after.character != ".":
                    runs += self._atom(after, script, upright, runs)
            else:
                made = self._atom(atom, script, upright, runs)
                if atom.macro in WORDS:
                    if runs and ends_operand(runs):
                        runs.append(Run(" ", script=script))
                    follows = atoms[index : index + 1]
                    if follows and follows[0].character not in ("(", "[", "^", "_", ")", ","):
                        made.append(Run(" ", script=script))
                runs += made
        return trimmed(runs)

    def _script(self, runs: list[Run], mark: _Atom, atom: _Atom, script: int) -> None:
        up = mark.character == "^"
        if atom.macro == "prime":
            runs.append(Run("′", atom.at + self._shift, script=script))
        elif script:  # a script of a script stands beside it: Qt raises one step only
            inner = self._atom(atom, script, False, [])
            runs.append(Run(mark.character, mark.at + self._shift, script=script))
            runs += bracketed(inner, script) if length(inner) > 1 else inner
        else:
            runs += self._atom(atom, 1 if up else -1, False, [])

    def _atom(self, atom: _Atom, script: int, upright: bool, before: Sequence[Run]) -> list[Run]:
        if atom.node is None:
            return self._character(atom, script, upright, before)
        kind = atom.node.nodeType().__name__
        if kind == "LatexGroupNode":
            inner = self.read(atom.node.nodelist, script, upright)
            opening, closing = atom.node.delimiters
            if opening not in ("{", "", "["):
                return [Run(opening, script=script), *inner, Run(closing, script=script)]
            return inner
        if kind == "LatexMacroNode":
            return self._macro(atom, script, upright, before)
        if kind == "LatexEnvironmentNode":
            return self._environment(atom.node, script)
        if kind == "LatexMathNode":
            return self.read(atom.node.nodelist, script)
        raise ValueError(f"unknown node {kind}")

    def _character(self, atom: _Atom, script: int, upright: bool, before: Sequence[Run]) -> list[Run]:
        character = {"-": "−", "*": "∗", "'": "′", "~": " ", "&": ""}.get(atom.character, atom.character)
        at = atom.at + self._shift
        runs: list[Run] = []
        if character in OPERATORS and not (character in "+−±∓" and not ends_operand(before)):
            self._operator(runs, character, at, script, before)
        elif character in ",;":
            runs = [Run(character, at, script=script), Run(" ", script=script)]
        elif character:
            runs = [Run(character, at, italic=character.isalpha() and not upright, script=script)]
        return runs

    def _operator(self, runs: list[Run], text: str, at: int, script: int, before: Sequence[Run] = ()) -> None:
        """Blanks around it, but not in a script, where there is no room."""
        if script:
            runs.append(Run(text, at, script=script))
            return
        if ends_operand(runs or before):
            runs.append(Run(" "))
        runs += [Run(text, at), Run(" ")]

    def _macro(self, atom: _Atom, script: int, upright: bool, before: Sequence[Run]) -> list[Run]:
        name, node = atom.macro, atom.node
        at = atom.at + self._shift
        arguments = list((node.nodeargd.argnlist if node.nodeargd else None) or [])
        if name in SPACES:
            return [Run(SPACES[name], script=script)] if SPACES[name] else []
        if name in TEXT:
            words = "".join(run.text for run in self._words(arguments[-1]))
            first = next(iter(self._words(arguments[-1])), Run(""))
            return [Run(words, first.at, script=script)]
        if name in WORDS:
            return [Run(name, at + 1, script=script)]
        if name in IGNORED:
            return []
        if name.lstrip("dtc") == "frac":
            top, below = (self._argument(one, script) for one in arguments)
            top = bracketed(top, script) if has_operator(top) else top
            below = bracketed(below, script) if length(below) > 1 else below
            return [*top, Run("/", at, script=script), *below]
        if name == "sqrt":
            index = "".join(run.text for run in self._argument(arguments[0], 0)) if arguments[0] else ""
            inner = self._argument(arguments[1], script)
            sign = Run(ROOTS.get(index, "√"), at, script=script)
            root = [Run(index, script=1)] if index and index not in ROOTS else []
            return [*root, sign, *(bracketed(inner, script) if length(inner) > 1 else inner)]
        if name.lstrip("dt") == "binom":
            top, below = self._argument(arguments[0], 1), self._argument(arguments[1], -1)
            return [Run("(", at, script=script), *top, *below, Run(")", script=script)]
        if name in ("overset", "stackrel", "underset"):
            return [
                *self._argument(arguments[1], script),
                *self._argument(arguments[0], -1 if name[0] == "u" else 1),
            ]
        if name in ("xrightarrow", "xleftarrow"):
            arrow = Run("→" if "right" in name else "←", at)
            return [Run(" "), *self._argument(arguments[-1], 1), arrow, Run(" ")]
        if name in ALPHABETS:
            return [lettered(run, ALPHABETS[name]) for run in self._argument(arguments[0], script)]
        if name in ACCENTS or name in LINES:
            return [
                accented(run, ACCENTS.get(name) or LINES[name])
                for run in self._argument(arguments[0], script)
            ]
        if name in ("pmod", "tag"):
            inner = self._argument(arguments[0], script)
            return [Run("  (mod " if name == "pmod" else "  ("), *inner, Run(")")]
        if name == "bmod":
            return [Run(" mod ", script=script)]
        if name in PLAIN:
            return self._argument(arguments[-1], script) if arguments and arguments[-1] else []
        text = _symbol(name)
        if text is None:
            return [
                Run("\\" + name, at, script=script),
                *(r for one in arguments if one for r in self._argument(one, script)),
            ]
        runs: list[Run] = []
        if len(text) == 1 and (
            text in OPERATORS or (unicodedata.category(text) == "Sm" and text not in LARGE)
        ):
            self._operator(runs, text, at, script, before)
        else:
            runs = [Run(text, at, italic=text.isalpha() and len(text) == 1 and text.islower(), script=script)]
        return runs

    def _argument(self, node: Any, script: int, upright: bool = False) -> list[Run]:
        if node is None:
            raise ValueError("an argument is missing")
        return self.read([node], script, upright)

    def _words(self, node: Any) -> Iterator[Run]:
        """Text inside a formula: its blanks count."""
        if node is None:
            raise ValueError("an argument is missing")
        for one in node.nodelist if hasattr(node, "nodelist") else [node]:
            chars = getattr(one, "chars", None) or getattr(one, "specials_chars", None)
            if chars is not None:
                yield Run(chars.replace("~", " "), one.pos + self._shift)
            elif getattr(one, "nodelist", None) is not None:
                yield from (
                    self._words(one) if one.nodeType().__name__ == "LatexGroupNode" else self.read([one])
                )
            else:
                yield from self.read([one])

    def _environment(self, node: Any, script: int) -> list[Run]:
        rows: list[list[list[Run]]] = []
        for row in _split(list(self._atoms(node.nodelist)), lambda atom: atom.macro == "\\"):
            cells = _split(row, lambda atom: atom.character == "&")
            rows.append([self._read_atoms(cell, script, False) for cell in cells])
        while rows and not any(rows[-1]):
            rows.pop()
        name = node.environmentname.rstrip("*")
        brackets = BRACKETS.get(name)
        if name == "cases" or brackets:
            opening, closing = (brackets[0], brackets[1]) if brackets else ("{ ", "")
            lines = [put_between(row, "  " if name == "cases" else " ") for row in rows]
            return [Run(opening), *put_between(lines, "; "), *([Run(closing)] if closing else [])]
        return put_between([put_between(row, " ") for row in rows], "\u2028")


def _split(atoms: list[_Atom], at: Callable[[_Atom], bool]) -> list[list[_Atom]]:
    parts: list[list[_Atom]] = [[]]
    for atom in atoms:
        if at(atom):
            parts.append([])
        else:
            parts[-1].append(atom)
    return parts
