"""The restrictions of pod templates as CEL, for the chart's ValidatingAdmissionPolicy. Pure.

`make chart` writes them to charts/s3sink-operator/files/sink-restrictions.yaml. The expressions read the allowed fields
from `variables.fields`, which the chart makes of the file and of its values, so one expression serves all values.
"""

from __future__ import annotations

import json
from typing import Any

from s3sink_operator.config.sink_restrictions import (
    ALLOWED_FIELDS,
    ALLOWED_SPARK,
    INNER_PATHS,
    LISTS,
    PROCESSES,
    SPARK_PODS,
    UNSAFE_ANNOTATION,
)


def restrictions_document() -> dict[str, Any]:
    """The allowed fields, and for each process the expression of the fields of its template that are not allowed: a
    text, empty if all are allowed."""
    return {
        "fields": list(ALLOWED_FIELDS),
        "spark": {"prefix": SPARK_PODS, "allowed": list(ALLOWED_SPARK)},
        "rejected": {process: rejected_fields(f"variables.{process}") for process in PROCESSES},
    }


def rejected_fields(root: str) -> str:
    """A CEL expression of the fields of the template `root` that are not allowed, joined by commas. `root`: a CEL
    expression of a map."""
    parts = _parts(root, "")
    parts.append(
        f"'metadata' in {root} && 'annotations' in {root}.metadata ? "
        f"{root}.metadata.annotations.filter(k, k.startsWith({_text(UNSAFE_ANNOTATION)}))"
        f".map(k, 'metadata.annotations: ' + k).join(', ') : ''"
    )
    return _joined(parts)


def _parts(node: str, path: str, depth: int = 0) -> list[str]:
    """Expressions of texts: the rejected fields of the map `node` at `path`, and those of each inner path below it."""
    inner = [child for child in INNER_PATHS if child and child.rpartition(".")[0] == path]
    prefix = f"{path}." if path else ""
    known = "".join(f" || k == {_text(child[len(prefix) :])}" for child in inner)
    field = f"({_text(prefix)} + k)"
    value = f"{node}[k]"
    by_item = f"{value}.size() > 0 && {value}.all(v, {_is_allowed_scalar('v', field)})"
    by_value = f"type({value}) == list ? {by_item} : {_is_allowed_scalar(value, field)}"
    allowed = f"{field} in variables.fields{known} || ({by_value})"
    parts = [f"{node}.filter(k, !({allowed})).map(k, {field}).join(', ')"]
    for child in inner:
        step = child[len(prefix) :]
        below = f"{node}.{step}"
        if child in LISTS:
            item = f"i{depth}"
            found = f"{below}.map({item}, {_joined(_parts(item, child, depth + 1))}).filter(s, s != '').join(', ')"
        else:
            found = _joined(_parts(below, child, depth))
        parts.append(f"{_text(step)} in {node} && !({_text(child)} in variables.fields) ? {found} : ''")
    return parts


def _is_allowed_scalar(value: str, field: str) -> str:
    is_scalar = " || ".join(f"type({value}) == {kind}" for kind in ("bool", "int", "string"))
    return f"(({is_scalar}) && ({field} + '=' + string({value})) in variables.fields)"


def _joined(parts: list[str]) -> str:
    return f"[{', '.join(f'({part})' for part in parts)}].filter(s, s != '').join(', ')"


def _text(value: str) -> str:
    """A CEL string literal."""
    return "'" + json.dumps(value, ensure_ascii=False)[1:-1].replace("'", "\\'") + "'"
