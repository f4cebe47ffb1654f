"""JSON schemas as GBNF: llama-cpp-python's converter, with its mistakes about JSON mended."""

# mypy: disable-error-code="no-untyped-call"
# The converter has no types.

from __future__ import annotations

import json
import re
import urllib.parse
from typing import Any

from llama_cpp.llama_grammar import BuiltinRule, SchemaConverter

from native.errors import GrammarError

MAX_CHARS = 64 * 1024
MAX_REPETITIONS = 400  # each becomes a nested group

# What cannot stand in a JSON string as it is.
_ESCAPED = r"\"\\\x00-\x1F"
_PLAIN = rf"[^{_ESCAPED}\x7F]"
_CHARACTER = BuiltinRule(
    rf'{_PLAIN} | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F])'
)
_CLASS = re.compile(r"\\.|\[(\^?)((?:\\.|[^\]\\])*)\]", re.DOTALL)
_BRACES = re.compile(r"\{([^}]*)\}")
_COUNTS = ("minItems", "maxItems", "minLength", "maxLength")
_NO_RULES = {
    *("type", "$defs", "definitions", "title", "description", "default", "examples", "$schema", "$id"),
    *("$comment", "deprecated", "readOnly", "writeOnly"),
}
_FORMATS = {"date", "time", "date-time", "uuid", "uuid1", "uuid2", "uuid3", "uuid4", "uuid5"}


def schema_to_gbnf(text: str) -> tuple[str, tuple[str, ...]]:
    """GBNF for the texts that a JSON schema allows, and the keywords in it that are not enforced.

    Raises GrammarError, in one line, for what is no schema or cannot be converted.
    """
    if len(text) > MAX_CHARS:
        raise GrammarError(f"it is {len(text):,} characters long, where {MAX_CHARS:,} are allowed")
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GrammarError(f"it is not JSON ({error})") from error
    if not isinstance(schema, dict):
        raise GrammarError("it is not a JSON object")
    converter = _Converter()
    try:
        converter.find_refs(schema)
        converter.visit(schema, "")
    except GrammarError:
        raise
    except RecursionError as error:
        raise GrammarError("it is nested too deep") from error
    except Exception as error:  # the converter takes the form of a schema for granted
        words = " ".join(str(error).split())[:200]
        raise GrammarError(f"it cannot be converted ({words or type(error).__name__})") from error
    return converter.format_grammar(), tuple(sorted(converter.unenforced))


class _Converter(SchemaConverter):
    def __init__(self) -> None:
        super().__init__(prop_order={}, allow_fetch=False, dotall=False, raw_pattern=False)
        self.unenforced: set[str] = set()
        self._ref_names: dict[str, str] = {}

    def find_refs(self, schema: dict[str, Any]) -> None:
        """Look up every reference; the package leaves out those beside another one."""
        waiting: list[Any] = [schema]
        while waiting:
            node = waiting.pop()
            waiting += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
            ref = node.get("$ref") if isinstance(node, dict) else None
            if isinstance(ref, str):
                self._refs[ref] = _looked_up(schema, ref)

    def visit(self, schema: dict[str, Any], name: str) -> str:
        for keyword in _COUNTS:
            count = schema.get(keyword, 0)
            if not isinstance(count, int) or not 0 <= count <= MAX_REPETITIONS:
                raise GrammarError(f"{keyword} must be a number from 0 to {MAX_REPETITIONS}")
        self.unenforced |= schema.keys() - _enforced(schema) - _NO_RULES
        return str(super().visit(schema, name))

    def _resolve_ref(self, ref: str) -> str:
        """By the whole reference: the package goes by its last word, which may mean another rule."""
        if ref not in self._ref_names:
            name = self._ref_names[ref] = f"definition--{len(self._ref_names)}"
            self._ref_names[ref] = self.visit(self._refs[ref], name)
        return self._ref_names[ref]

    def _format_literal(self, literal: str) -> str:
        """A JSON text as GBNF: its backslashes stand for themselves, and it may hold any character."""
        text = json.dumps(json.loads(literal), ensure_ascii=False)
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    def _add_primitive(self, name: str, rule: BuiltinRule) -> str:
        return str(super()._add_primitive(name, _CHARACTER if name == "char" else rule))

    def _add_rule(self, name: str, rule: str) -> str:
        return str(super()._add_rule(name, _PLAIN if name == "dot" else rule))

    def _visit_pattern(self, pattern: str, name: str) -> str:
        """What a pattern matches stands between quotes as it is, so it must need no escapes."""
        if '"' in pattern or "\\\\" in pattern:
            raise GrammarError("a pattern with a quote or a backslash cannot be used")
        if not (pattern.startswith("^") and pattern.endswith("$")):
            raise GrammarError("a pattern must begin with ^ and end with $")
        counts = (int(n) for braces in _BRACES.findall(pattern) for n in re.findall(r"\d+", braces))
        if any(count > MAX_REPETITIONS for count in counts):
            raise GrammarError(f"a pattern may repeat something {MAX_REPETITIONS} times at most")
        inner = _CLASS.sub(lambda m: f"[^{_ESCAPED}{m[2]}]" if m[1] else m[0], pattern[1:-1])
        return str(super()._visit_pattern(f"^({inner})$", name))


def _looked_up(schema: dict[str, Any], ref: str) -> Any:
    """What a reference such as "#/$defs/a" means (RFC 6901)."""
    if ref != "#" and not ref.startswith("#/"):
        raise GrammarError(f"the reference {ref[:80]!r} leads out of it")
    target: Any = schema
    for part in urllib.parse.unquote(ref).split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        try:
            target = target[int(key)] if isinstance(target, list) else target[key]
        except (KeyError, IndexError, ValueError, TypeError):
            raise GrammarError(f"the reference {ref[:80]!r} leads nowhere") from None
    return target


def _enforced(schema: dict[str, Any]) -> set[str]:
    """The keywords that the converter looks at, in its order; it goes by the first that it finds."""
    kind = schema.get("type")
    for keyword in ("$ref", "oneOf", "anyOf"):
        if keyword in schema:
            return {keyword}
    if isinstance(kind, list):
        return set()
    for keyword in ("const", "enum"):
        if keyword in schema:
            return {keyword}
    if kind in (None, "object"):
        open_to_more = schema.get("additionalProperties", True)
        if "properties" in schema or open_to_more is not True:
            used = {"properties", "additionalProperties", "required"}
            if set(schema.get("required", ())) - schema.get("properties", {}).keys():
                used.remove("required")
            if "additionalProperties" in schema and open_to_more and schema.get("properties"):
                used.remove("additionalProperties")  # one of them may repeat a name
            return used
        if "allOf" in schema:
            return {"allOf"}
    if kind in (None, "array") and ("items" in schema or "prefixItems" in schema):
        if isinstance(schema.get("items"), dict):
            return {"items", "minItems", "maxItems"}
        return {"items" if schema.get("items") else "prefixItems"}
    if kind in (None, "string"):
        if "pattern" in schema:
            return {"pattern"}
        if schema.get("format") in _FORMATS:
            return {"format"}
    return {"minLength", "maxLength"} if kind == "string" else set()
