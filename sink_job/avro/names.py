"""Names of the types of an Avro schema: a name is defined once, and used from then on.

A name without a namespace means one of the enclosing type's namespace, and not every reader looks for it without a
namespace then. So a type without a namespace is defined again, with a number, where a type with a namespace uses it. An
enclosing type cannot be defined again: a type that contains a reference to one without a namespace has none, either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote_plus

from sink_job.avro.map_entries import NAMESPACE
from sink_job.avro.schema import NAMED
from sink_job.connect.errors import InvalidSchema

_VALID: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INVALID: Final = re.compile(r"[^A-Za-z0-9_]")


def is_avro_name(text: str) -> bool:
    """Whether Avro allows the name, which has no namespace."""
    return _VALID.fullmatch(text) is not None


def avro_name(text: str) -> str:
    """The name of a field or of a type without its namespace."""
    if is_avro_name(text):
        return text
    encoded = quote_plus(text, safe="*", errors="replace").replace("~", "%7E") or "_"
    if encoded[:1].isdigit():
        encoded = f"x{encoded}"
    return _INVALID.sub("_", encoded)


def avro_full_name(text: str) -> str:
    """The name of a type with its namespace, if it has one."""
    return ".".join(avro_name(each) for each in text.split(".") if each) or avro_name(text)


Node = dict[str, Any]
_Scope = dict[str | None, str]
"""The Avro names of the enclosing structs by their names in Connect; under None that of the innermost type."""

UNNAMED: Final = f"{NAMESPACE}.ConnectDefault"
MAP_ENTRY: Final = f"{NAMESPACE}.MapEntry"


def with_names(tree: Any) -> Any:
    """The Avro schema of `tree`, in which a named type has its full name in `name`, None if it has none, and a use of
    an enclosing struct is `{"ref": name}`. The name of a struct in Connect is `connect`. Raises InvalidSchema."""
    return _Names().named(tree, {})


class _Names:
    def __init__(self) -> None:
        self._defined: dict[str, Node] = {}
        self._unnamed = 0

    def named(self, node: Any, scope: _Scope) -> Any:
        if isinstance(node, list):
            return [self.named(member, scope) for member in node]
        if "ref" in node:
            return _enclosing(node["ref"], scope)
        match node["type"]:
            case "array":
                return {**node, "items": self.named(node["items"], scope)}
            case "map":
                return {**node, "values": self.named(node["values"], scope)}
            case kind if kind in NAMED:
                return self._definition(node, scope)
        return node if len(node) > 1 else node["type"]

    def _definition(self, node: Node, scope: _Scope) -> object:
        for name in self._candidates(node, scope):
            if name not in self._defined:
                self._defined[name] = node
                return self._defining(node, name, scope)
            if self._defined[name] == node and ("." in name or not _namespace(scope.get(None, ""))):
                return name
        raise AssertionError("there is always a free name")

    def _defining(self, node: Node, name: str, scope: _Scope) -> Node:
        defined = {"type": node["type"], "name": name.rpartition(".")[2], "namespace": _namespace(name)}
        defined |= {key: value for key, value in node.items() if key not in ("type", "name", "connect")}
        if node["name"] == MAP_ENTRY != name:
            defined["connect.internal.type"] = "MapEntry"
        if node["type"] != "record":
            return defined
        inner: _Scope = {**scope, None: name}
        if node.get("connect"):
            inner[node["connect"]] = name
        return defined | {"fields": [{**field, "type": self.named(field["type"], inner)} for field in node["fields"]]}

    def _candidates(self, node: Node, scope: _Scope) -> Iterator[str]:
        full = self._full_name(node["name"])
        if _refers_to_no_namespace(node, scope):
            full = full.rpartition(".")[2]
        yield full
        for number in range(2, len(self._defined) + 3):
            yield f"{full}_{number}"

    def _full_name(self, name: str | None) -> str:
        if name is not None:
            return avro_full_name(name)
        self._unnamed += 1
        return UNNAMED if self._unnamed == 1 else f"{UNNAMED}{self._unnamed}"


def _namespace(name: str) -> str:
    return name.rpartition(".")[0]


def _enclosing(name: str | None, scope: _Scope) -> str:
    if name is None or name not in scope:
        raise InvalidSchema(f"the schema refers to {name}, which does not enclose the reference")
    return scope[name]


def _refers_to_no_namespace(node: Any, scope: _Scope) -> bool:
    """Whether a type in `node` refers to an enclosing type without a namespace."""
    if isinstance(node, list):
        return any(_refers_to_no_namespace(each, scope) for each in node)
    if not isinstance(node, dict):
        return False
    if "ref" in node:
        return "." not in scope.get(node["ref"], ".")
    inner = [node.get("items"), node.get("values"), *(field["type"] for field in node.get("fields", ()))]
    return any(_refers_to_no_namespace(each, scope) for each in inner)
