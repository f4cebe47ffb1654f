"""A vocabulary of single characters and some control tokens, in place of a loaded model."""

from __future__ import annotations

import re

CONTROL = {"<bos>": 1, "<eos>": 2, "<|im_start|>": 3, "<|im_end|>": 4, "<|im_end|>x": 5}
_FIRST = 10  # ids of characters begin here
_CONTROL = re.compile("|".join(map(re.escape, sorted(CONTROL, key=len, reverse=True))))


class FakeVocab:
    """What ``PromptBuilder`` asks of a model, and what it was asked to tokenise."""

    bos = CONTROL["<bos>"]

    def __init__(self, *, adds_bos: bool = False) -> None:
        self.adds_bos = adds_bos
        self.special_tokens = CONTROL
        self.asked: list[tuple[str, bool]] = []

    def tokenize(self, text: str, *, parse_special: bool, add_special: bool = False) -> list[int]:
        assert not add_special
        self.asked.append((text, parse_special))
        if not parse_special:
            return characters(text)
        tokens: list[int] = []
        end = 0
        for match in _CONTROL.finditer(text):
            tokens += [*characters(text[end : match.start()]), CONTROL[match[0]]]
            end = match.end()
        return tokens + characters(text[end:])

    def token_bytes(self, token: int) -> bytes:
        """Tokens beyond Unicode stand for two characters, as a merge would: see ``pair``."""
        if token < _FIRST:
            return b""
        number = token - _FIRST
        if number > 0x10FFFF:
            first, second = divmod(number - 0x110000, 256)
            return (chr(first) + chr(second)).encode()
        return chr(number).encode("utf-8", "surrogatepass")


def characters(text: str) -> list[int]:
    return [_FIRST + ord(c) for c in text]


def pair(two: str) -> int:
    """A token that ``tokenize`` never gives: the model itself said these two characters in one."""
    return _FIRST + 0x110000 + ord(two[0]) * 256 + ord(two[1])


def spell(tokens: list[int]) -> str:
    """Tokens as text, control tokens as ``{name}``: what is markup can be told from what looks like it."""
    names = {token: f"{{{text}}}" for text, token in CONTROL.items()}
    return "".join(
        names[token] if token in names else FakeVocab().token_bytes(token).decode() for token in tokens
    )
