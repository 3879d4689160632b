"""The text of an Avro schema, parsed: names are resolved, and a named type is one object wherever it is used.

The rules are those of org.apache.avro.Schema.Parser without validation of defaults. An unknown attribute is a property
of its type, and so is a logical type that does not fit its type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeGuard

import msgspec

from sink_job.connect.errors import InvalidSchema
from sink_job.connect.limits import MAX_DEPTH, SCHEMA_TEXT_TOO_DEEP, check_schema_text

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
NAMED: Final = frozenset({"record", "enum", "fixed"})
INT_RANGE: Final = (-(2**31), 2**31 - 1)
"""The minimum and maximum of an int."""
_RESERVED: Final = frozenset(
    {"type", "name", "namespace", "doc", "aliases", "fields", "symbols", "size", "items", "values", "default"}
)


@dataclass(slots=True, eq=False)
class AvroType:
    """A type. `kind` is a primitive's name, or record, enum, fixed, array, map, union.

    `name` is the full name of a named type. `element` is the type of an array's items and of a map's values.
    `members` are those of a union. `default` is the default symbol of an enum. `size` is in bytes. `properties` are all
    attributes that Avro does not define.
    """

    kind: str
    name: str = ""
    doc: str | None = None
    properties: Mapping[str, object] = field(default_factory=dict)
    fields: list[AvroField] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    default: str | None = None
    size: int = 0
    element: AvroType | None = None
    members: list[AvroType] = field(default_factory=list)

    @property
    def short_name(self) -> str:
        """The name without its namespace."""
        return self.name.rpartition(".")[2]

    @property
    def member_name(self) -> str:
        """The field of this type in the struct of a union: the short name of a named type, else the kind."""
        return self.short_name if self.kind in NAMED else self.kind

    @property
    def items(self) -> AvroType:
        """The type of the items of an array, or of the values of a map."""
        if self.element is None:
            raise InvalidSchema(f"the Avro type {self.kind} has no items")
        return self.element

    @property
    def nullable(self) -> AvroType | None:
        """The other member of a union of null and one type; None for any other type."""
        others = [member for member in self.members if member.kind != "null"]
        return others[0] if len(self.members) == 2 and len(others) == 1 else None

    @property
    def single(self) -> AvroType | None:
        """The only member of a union; None for any other type. In Connect a union of one type is that type
        (`flatten.singleton.unions`), but its data have the index of the member."""
        return self.members[0] if len(self.members) == 1 else None


@dataclass(slots=True, eq=False)
class AvroField:
    """A field of a record. `default` is the JSON value of its default, UNSET if it has none."""

    name: str
    type: AvroType
    doc: str | None = None
    default: object = msgspec.UNSET


def parse_avro(text: str, references: Iterable[str] = ()) -> AvroType:
    """Parses the schema `text`. `references` are the texts of the schemas that it refers to, each after its own.

    Raises InvalidSchema with the place of the error.
    """
    return parse_all([*references, text])[-1]


def parse_all(texts: Iterable[str]) -> list[AvroType]:
    """Parses schemas of which each can refer to those before it. Raises InvalidSchema with the place of the error."""
    parser = _Parser()
    return [parser.parse(text) for text in texts]


class _Parser:
    def __init__(self) -> None:
        self.names: dict[str, AvroType] = {}

    def parse(self, text: str) -> AvroType:
        try:
            node = msgspec.json.decode(text)
        except RecursionError:
            raise InvalidSchema(f"the Avro schema {SCHEMA_TEXT_TOO_DEEP}") from None
        except msgspec.DecodeError as error:
            raise InvalidSchema(f"the Avro schema is not JSON: {error}") from None
        check_schema_text(text, "the Avro schema")
        return self.parsed(node, "", "schema", 0)

    def parsed(self, node: object, namespace: str, place: str, depth: int) -> AvroType:
        """The type of `node`. `namespace` is that of the enclosing named type."""
        if depth > MAX_DEPTH:
            raise _error(place, f"types are nested deeper than {MAX_DEPTH}")
        if isinstance(node, str):
            return AvroType(node) if node in PRIMITIVES else self.named(node, namespace, place)
        if isinstance(node, list):
            return self.union(node, namespace, place, depth)
        if isinstance(node, dict):
            return self.defined(node, namespace, place, depth)
        raise _error(place, "a type must be a text, an array or an object")

    def named(self, name: str, namespace: str, place: str) -> AvroType:
        found = self.names.get(_full_name(name, namespace)) or self.names.get(name)
        if found is None:
            raise _error(place, f"the type {name!r} is not defined")
        return found

    def union(self, node: list[object], namespace: str, place: str, depth: int) -> AvroType:
        members = [self.parsed(member, namespace, f"{place}[{n}]", depth + 1) for n, member in enumerate(node)]
        names = [member.name or member.kind for member in members]
        if "union" in names:
            raise _error(place, "a union must not contain a union")
        if len(set(names)) < len(names):
            raise _error(place, "a union must not contain a type twice")
        return AvroType("union", members=members)

    def defined(self, node: dict[str, object], namespace: str, place: str, depth: int) -> AvroType:
        kind = node.get("type")
        if not isinstance(kind, str):
            return self.parsed(kind, namespace, place, depth + 1)
        properties = {key: value for key, value in node.items() if key not in _RESERVED}
        match kind:
            case "record" | "error":
                return self.record(node, properties, namespace, place, depth)
            case "enum" | "fixed":
                return self.leaf(node, kind, properties, namespace, place)
            case "array" | "map":
                element = node.get("items" if kind == "array" else "values")
                inner = self.parsed(element, namespace, f"{place}.{kind}", depth + 1)
                return AvroType(kind, properties=properties, element=inner)
        if kind in PRIMITIVES:
            return AvroType(kind, properties=properties)
        return self.named(kind, namespace, place)

    def define(self, node: dict[str, object], kind: str, namespace: str, place: str) -> AvroType:
        """Adds a named type, which does not have its content yet."""
        name, own = node.get("name"), node.get("namespace", namespace)
        if not isinstance(name, str) or not name:
            raise _error(place, f"the {kind} has no name")
        full = _full_name(name, own if isinstance(own, str) else "")
        if full in self.names:
            raise _error(place, f"the type {full} is defined twice")
        defined = self.names[full] = AvroType(kind, full, _text(node.get("doc")))
        return defined

    def record(
        self, node: dict[str, object], properties: Mapping[str, object], namespace: str, place: str, depth: int
    ) -> AvroType:
        record = self.define(node, "record", namespace, place)
        record.properties = properties
        inner = record.name.rpartition(".")[0]
        fields = node.get("fields")
        if not isinstance(fields, list):
            raise _error(place, f"the record {record.name} has no fields")
        record.fields.extend(self.field(each, inner, record.name, depth) for each in fields)
        if len({each.name for each in record.fields}) < len(record.fields):
            raise _error(place, f"the record {record.name} has two fields with one name")
        return record

    def field(self, node: object, namespace: str, record: str, depth: int) -> AvroField:
        name = node.get("name") if isinstance(node, dict) else None
        if not isinstance(node, dict) or not isinstance(name, str):
            raise _error(record, "a field has no name")
        found = self.parsed(node.get("type"), namespace, f"{record}.{name}", depth + 1)
        return AvroField(name, found, _text(node.get("doc")), node.get("default", msgspec.UNSET))

    def leaf(
        self, node: dict[str, object], kind: str, properties: Mapping[str, object], namespace: str, place: str
    ) -> AvroType:
        """An enum or a fixed."""
        found = self.define(node, kind, namespace, place)
        found.properties = properties
        if kind == "fixed":
            found.size = _size(node, place)
        else:
            found.symbols, found.default = _symbols(node, place), _text(node.get("default"))
        return found


def _size(node: dict[str, object], place: str) -> int:
    size = node.get("size")
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise _error(place, "the size of a fixed must be an integer of 0 or more")
    return size


def _symbols(node: dict[str, object], place: str) -> list[str]:
    symbols = node.get("symbols")
    if not _is_texts(symbols) or len(set(symbols)) < len(symbols):
        raise _error(place, "the symbols of an enum must be different texts")
    return symbols


def _is_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _full_name(name: str, namespace: str) -> str:
    return name.removeprefix(".") if "." in name or not namespace else f"{namespace}.{name}"


def _error(place: str, reason: str) -> InvalidSchema:
    return InvalidSchema(f"the Avro schema is invalid at {place}: {reason}")
