"""Formulas in Markdown: ``$..$``, ``$$..$$``, ``\\(..\\)``, ``\\[..\\]``; money and code are none."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline

# In the environment of a parse: more text is to come after what is parsed, so that its last
# paragraph may still change.
OPEN_END = "open_end"
_OPEN = "open_paragraph"

_CLOSING = {"$$": "$$", "\\[": "\\]", "\\(": "\\)"}
_LONGEST = 4000
_MOST_LINES = 60
_COMMAND = re.compile(r"\\[A-Za-z]")
# What a pair of dollars must hold to be a formula if it is more than one word.
_SIGNS = re.compile(r"[\\^_{}=<>+*/|()\-]")
_WORDS = re.compile(r"[^\W\d_]{2,}\s+[^\W\d_]{2,}")


def add_formulas(parser: MarkdownIt) -> None:
    parser.inline.ruler.before("escape", "formula", _inline)
    parser.block.ruler.before(
        "fence", "formula", _block, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )
    parser.core.ruler.before("inline", "open_end", _note_open_paragraph)


def _note_open_paragraph(state: StateCore) -> None:
    if not state.env.get(OPEN_END):
        return
    last = next((token for token in reversed(state.tokens) if token.type == "inline"), None)
    lines = state.src.count("\n") + 1 - state.src.endswith("\n")
    if last is not None and last.map and last.map[1] >= lines:
        state.env[_OPEN] = last.content


def _inline(state: StateInline, silent: bool) -> bool:
    source, start = state.src, state.pos
    if source[start] not in "$\\":
        return False
    mark = source[start : start + 2]
    if mark in _CLOSING:
        end = _closed(source, start, _CLOSING[mark], state.posMax)
    elif mark[0] == "$":
        mark = "$"
        end = _dollar(source, start, state.posMax)
    else:
        return False
    if end < 0 and source is state.env.get(_OPEN) and _may_become_one(source, start, mark, state.posMax):
        # Half a formula stays as it is written, so that nothing in it is taken for Markdown meanwhile.
        if not silent:
            state.push("text", "", 0).content = source[start : state.posMax]
        state.pos = state.posMax
        return True
    if end < 0:
        return False
    if not silent:
        token = state.push("formula", "", 0)
        token.content = source[start:end]
        token.markup = mark
    state.pos = end
    return True


def _closed(source: str, start: int, closing: str, limit: int) -> int:
    """Where the formula ends that begins with a mark of two characters; -1 if it does not."""
    end = source.find(closing, start + 2, min(limit, start + _LONGEST))
    if end < 0 or not source[start + 2 : end].strip():
        return -1
    return end + 2


def _dollar(source: str, start: int, limit: int) -> int:
    """The end of ``$..$``, by Pandoc's rules: no blank inside next to a mark, no digit after it; and
    no letter either, and no plain words, as in ``$5 or 10$``."""
    before = source[start - 1 : start]
    if before.isalnum() or (before in ("$", "\\") and before):
        return -1
    if start + 1 >= limit or source[start + 1].isspace() or source[start + 1] == "$":
        return -1
    at = start + 1
    limit = min(limit, start + _LONGEST)
    while (at := source.find("$", at, limit)) >= 0:
        if source[at - 1] == "\\":
            at += 1
            continue
        after = source[at + 1 : at + 2]
        if source[at - 1].isspace() or after.isalnum() or after == "$":
            return -1
        inner = source[start + 1 : at]
        if "`" in inner or (_WORDS.search(inner) and not _COMMAND.search(inner)):
            return -1
        if len(inner.split()) > 1 and not _SIGNS.search(inner):
            return -1
        return at + 1
    return -1


def _may_become_one(source: str, start: int, mark: str, limit: int) -> bool:
    rest = source[start + len(mark) : limit]
    if len(rest) > _LONGEST or "`" in rest:
        return False
    if mark != "$":
        return True
    if source[start - 1 : start].isalnum() or not rest or rest[0].isspace() or "$" in rest:
        return False
    return _COMMAND.search(rest) is not None


def _block(state: StateBlock, startLine: int, endLine: int, silent: bool) -> bool:
    """A formula that has its lines to itself. A blank line ends it, closed or not."""
    if state.is_code_block(startLine):
        return False
    first = _line(state, startLine)
    closing = _CLOSING.get(first[:2])
    if closing is None or first[:2] == "\\(":
        return False
    line = startLine
    lines = [first[2:]]
    open_end = bool(state.env.get(OPEN_END))
    while closing not in lines[-1]:
        if line + 1 >= endLine:
            break
        text = _line(state, line + 1)
        if not text.strip() or state.sCount[line + 1] < state.blkIndent or len(lines) > _MOST_LINES:
            open_end = False
            break
        line += 1
        lines.append(text)
    last = lines[-1].rstrip()
    closed = last.endswith(closing) and last.index(closing) == len(last) - 2
    if closing in last and not closed:
        return False  # words follow: the rule for formulas in a sentence takes it
    if silent:
        # What comes before ends only where nothing that follows can take it back.
        return closed and (not open_end or state.eMarks[line] < len(state.src))
    if not closed and not open_end:
        return False
    lines[0] = first
    content = "\n".join(lines).rstrip()
    if closed and not content[2:-2].strip():
        return False
    state.line = line + 1
    token = state.push("formula" if closed else "open_formula", "", 0)
    token.content = content
    token.markup = first[:2]
    token.block = True
    token.map = [startLine, state.line]
    return True


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]
