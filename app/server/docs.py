"""The page at /docs: the OpenAPI document as plain HTML that loads nothing from anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

_STYLE = (
    "body{font:14px/1.5 system-ui,sans-serif;max-width:760px;margin:32px auto;padding:0 16px}"
    "code{font-family:ui-monospace,monospace}table{border-collapse:collapse;width:100%}"
    "td,th{text-align:left;vertical-align:top;padding:4px 12px 4px 0;border-bottom:1px solid #8884}"
    "h2{margin-top:32px}:root{color-scheme:light dark}"
)


def docs_page(document: Mapping[str, Any]) -> str:
    """``document`` is an OpenAPI 3 document."""
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>Slipstream API</title>",
        f"<style>{_STYLE}</style><h1>Slipstream</h1><p>{escape(document['info']['description'])} ",
        "The same as a document: <a href='/openapi.json'>openapi.json</a></p>",
    ]
    schemas = document.get("components", {}).get("schemas", {})
    for path, methods in document["paths"].items():
        for method, about in methods.items():
            parts.append(f"<h2><code>{method.upper()} {escape(path)}</code></h2>")
            body = about.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            if body is not None:
                parts.append(_fields(_resolved(body, schemas), schemas))
            rows = "".join(
                f"<tr><td>{escape(status)}</td><td>{escape(answer.get('description', ''))}</td></tr>"
                for status, answer in about.get("responses", {}).items()
            )
            parts.append(f"<p>Answers</p><table>{rows}</table>")
    return "".join(parts) + "</html>"


def _fields(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    required = set(schema.get("required", ()))
    rows = []
    for name, field in schema.get("properties", {}).items():
        must = ", required" if name in required else ""
        words = escape(field.get("description", ""))
        rows.append(
            f"<tr><td><code>{escape(name)}</code></td><td>{escape(_kind(field, schemas))}{must}</td>"
            f"<td>{words}</td></tr>"
        )
    return f"<table><tr><th>Field</th><th>Type</th><th></th></tr>{''.join(rows)}</table>"


def _kind(field: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    field = _resolved(field, schemas)
    if "anyOf" in field:
        return " or ".join(kind for each in field["anyOf"] if (kind := _kind(each, schemas)) != "null")
    if "enum" in field:
        return " | ".join(map(str, field["enum"]))
    if "const" in field:
        return str(field["const"])
    kind = str(field.get("type", "object"))
    low = field.get("minimum", field.get("exclusiveMinimum"))
    high = field.get("maximum")
    if low is not None and high is not None:
        kind += f", {low} to {high}"
    if kind == "array":
        kind = f"list of {_kind(field.get('items', {}), schemas)}"
    return kind


def _resolved(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    return schemas[reference.rpartition("/")[2]] if reference else schema
