"""From messages to token ids: the template's markup is markup, a message's content is only text."""

from __future__ import annotations

import datetime
import json
import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from app.chat_template import ChatTemplate, TemplateError
from app.protocol import Begun, ChatMessage, ToolCall
from app.reasoning import TAGS, opened_by
from app.tools import Function, told_in_words
from native.model import Model

# Unicode noncharacters: no text means anything by them, so they can mark places in it.
_OPEN, _CLOSE = "\ufdd0", "\ufdd1"
_PLACE = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_END_MARKER = re.compile(r"\s*(<[^<>\s]+>|\[/?[A-Z_]+\])")
_REMEMBERED_ANSWERS = 512
_SYSTEM_MOVED = "This model has no place for a system prompt; it was put before your first message."


@dataclass(frozen=True)
class Prompt:
    """``closing`` is the tag that ends thoughts which the prompt opens, if it does. ``begun`` are the
    tokens that the beginning of the answer was made of, where they are known: the prompt ends so."""

    tokens: list[int]
    closing: str | None = None
    notices: tuple[str, ...] = ()
    begun: tuple[int, ...] = ()


@dataclass
class _Content:
    """Parts of message content that the template must carry through without touching them."""

    parts: list[str | tuple[int, ...]] = field(default_factory=list)

    def hide(self, part: str | tuple[int, ...]) -> str:
        self.parts.append(part)
        return f"{_OPEN}{len(self.parts) - 1}{_CLOSE}"


class PromptBuilder:
    """Builds prompts for one model and one template.

    Text of a control token inside a message is carried through the template under a placeholder
    and tokenised with special parsing off. The rest is tokenised as a whole, exactly as a template
    without such content would be. An answer this builder was told of (``remember``) keeps the very
    tokens it was made of, so that the KV cache of the turn before fits to its last token.
    """

    def __init__(self, model: Model, template: ChatTemplate) -> None:
        self._model = model
        self._template = template
        self._answers: OrderedDict[str, tuple[int, ...]] = OrderedDict()
        special = sorted(model.special_tokens, key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, [*special, _OPEN, _CLOSE])))

    def remember(self, text: str, tokens: Sequence[int]) -> None:
        """``tokens`` are what the answer ``text`` was made of, where they spell it exactly."""
        spelled = b"".join(map(self._model.token_bytes, tokens)).decode("utf-8", "replace")
        if spelled == text and text:
            self._answers[text] = tuple(tokens)
            self._answers.move_to_end(text)
            while len(self._answers) > _REMEMBERED_ANSWERS:
                self._answers.popitem(last=False)

    def build(
        self,
        messages: Sequence[ChatMessage],
        now: datetime.datetime,
        begun: Begun | None = None,
        functions: Sequence[Function] = (),
    ) -> Prompt:
        """The prompt for an answer, or for the rest of one that has ``begun``; ``functions`` may be called.
        Raises TemplateError when the template refuses the messages even after repair."""
        content = _Content()
        calls = functions or any(m.tool_calls or m.role == "tool" for m in messages)
        if calls and self._template.knows_tools:
            return self._with_tools(messages, now, functions, content)
        if calls:
            messages = told_in_words(messages, functions)
        hidden: list[tuple[str, str]] = [(m.role, self._hide(m, content)) for m in messages]
        text, notices = self._render_somehow(hidden, now)
        # A template may end with the message itself: then it is the message that ends so.
        last = hidden[-1][1].rstrip() if hidden else ""
        quoted = last and text.rstrip().endswith(last)
        closing = None if quoted else opened_by(text)
        if begun is None:
            return Prompt(self._tokenize(text, content), closing, notices)
        text += self._begin(begun, closing, content)
        known = () if begun.reasoning else self._answers.get(begun.text, ())
        if begun.text:
            closing = None
        elif begun.reasoning:
            closing = closing or TAGS[0][1]
        return Prompt(self._tokenize(text, content), closing, notices, known)

    def _with_tools(
        self,
        messages: Sequence[ChatMessage],
        now: datetime.datetime,
        functions: Sequence[Function],
        content: _Content,
    ) -> Prompt:
        """By a template that knows of functions; what it refuses is not repaired."""
        rendered: list[dict[str, Any]] = []
        for message in messages:
            made: dict[str, Any] = {"role": message.role, "content": self._hide(message, content)}
            if message.tool_calls:
                made["tool_calls"] = [
                    {
                        "id": call.id,
                        "type": "function",
                        "function": {"name": call.name, "arguments": self._hidden_json(call, content)},
                    }
                    for call in message.tool_calls
                ]
            if message.role == "tool":
                made["tool_call_id"] = message.tool_call_id
            rendered.append(made)
        text = self._template.render(rendered, now=now, tools=[each.as_tool() for each in functions])
        return Prompt(self._tokenize(text, content), opened_by(text))

    def _hidden_json(self, call: ToolCall, content: _Content) -> Any:
        """A call's arguments as templates take them, control tokens in their texts hidden."""

        def hide(value: Any) -> Any:
            if isinstance(value, str):
                return self._special.sub(lambda match: content.hide(match[0]), value)
            if isinstance(value, list):
                return [hide(each) for each in value]
            if isinstance(value, dict):
                return {hide(key): hide(each) for key, each in value.items()}
            return value

        return hide(json.loads(call.arguments))

    def text(self, text: str) -> Prompt:
        """A prompt that goes through no template, so that its control tokens are the sender's own: it may
        have been through one, or ask for what comes between two texts."""
        return Prompt(self._with_bos(self._model.tokenize(text, parse_special=True)))

    def _begin(self, begun: Begun, closing: str | None, content: _Content) -> str:
        """The beginning of an answer as the model would have written it. After the prompt for an answer
        and not in a message of the template's: that may trim it, end it, or leave its thoughts out."""
        said = self._hide(ChatMessage("assistant", begun.text), content)
        if not begun.reasoning and closing is None:
            return said
        thought = self._hide(ChatMessage("user", begun.reasoning), content)
        opening = "" if closing is not None else f"{TAGS[0][0]}\n"
        return f"{opening}{thought}" + (f"\n{closing or TAGS[0][1]}\n\n{said}" if begun.text else "")

    def _render_somehow(
        self, messages: list[tuple[str, str]], now: datetime.datetime
    ) -> tuple[str, tuple[str, ...]]:
        """The prompt's text, with as few repairs to the messages as the template needs, and what to
        tell about them. Raises the first TemplateError when none helps."""
        system = [content for role, content in messages if role == "system"]
        refusal = TemplateError("it leaves the system prompt out")
        for repaired, notices in (
            (messages, ()),
            (_merged(messages), ()),
            (_merged(_without_system(messages)), (_SYSTEM_MOVED,) if system else ()),
        ):
            try:
                text = self._render(repaired, now)
            except TemplateError as error:
                refusal = error if repaired is messages else refusal
                continue
            if all(content.strip() in text for content in system):
                return text, notices
        raise refusal

    def _render(self, messages: list[tuple[str, str]], now: datetime.datetime) -> str:
        return self._template.render([{"role": r, "content": c} for r, c in messages], now=now)

    def _hide(self, message: ChatMessage, content: _Content) -> str:
        tokens = self._answers.get(message.content) if message.role == "assistant" else None
        if tokens is not None:
            return content.hide(tokens)
        return self._special.sub(lambda match: content.hide(match[0]), message.content)

    def _tokenize(self, text: str, content: _Content) -> list[int]:
        model = self._model
        tokens: list[int] = []
        # split with one group gives text, index, text, index, ..., text
        for i, part in enumerate(_PLACE.split(text)):
            if i % 2 == 0:
                tokens += model.tokenize(part, parse_special=True) if part else []
                continue
            if int(part) >= len(content.parts):  # a template that makes up placeholders itself
                raise TemplateError("the chat template writes characters that no text has")
            hidden = content.parts[int(part)]
            tokens += model.tokenize(hidden, parse_special=False) if isinstance(hidden, str) else hidden
        return self._with_bos(tokens)

    def _with_bos(self, tokens: list[int]) -> list[int]:
        model = self._model
        starts = [model.bos] if model.adds_bos and model.bos is not None else []
        return tokens if tokens[:1] == starts else starts + tokens

    def end_marker(self, now: datetime.datetime) -> str | None:
        """What the template writes after an answer, such as ``<|im_end|>``; None if nothing."""
        content = _Content()
        place = content.hide("")
        try:
            text = self._template.render(
                [{"role": "user", "content": "x"}, {"role": "assistant", "content": place}],
                now=now,
                add_generation_prompt=False,
            )
        except TemplateError:
            return None
        match = _END_MARKER.match(text.partition(place)[2])
        return match[1] if match else None


def _without_system(messages: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The system's words in front of the first user turn."""
    system = "\n\n".join(content for role, content in messages if role == "system")
    turns = [(role, content) for role, content in messages if role != "system"]
    if system:
        first = next((i for i, (role, _) in enumerate(turns) if role == "user"), None)
        if first is None:
            turns.insert(0, ("user", system))
        else:
            turns[first] = ("user", f"{system}\n\n{turns[first][1]}")
    return turns


def _merged(messages: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """User and assistant in turn: what one of them says in a row becomes one message."""
    merged: list[tuple[str, str]] = []
    for role, content in messages:
        if merged and merged[-1][0] == role:
            merged[-1] = (role, f"{merged[-1][1]}\n\n{content}")
        else:
            merged.append((role, content))
    return merged
