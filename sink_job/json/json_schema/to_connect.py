"""JSON Schemas as Connect's, as io.confluent.connect.json.JsonSchemaData.toConnectSchema makes them with its default
settings (Confluent Platform 7).

Differences from JsonSchemaData, on purpose:

- The version of the whole schema is the version in its subject, also where the schema has `connect.version`.
- Title, description and default count wherever they are. JsonSchemaData drops them beside `allOf` and `enum`.
- An object in which it occurs itself is named by its title or its reference. JsonSchemaData numbers such objects.
- An invalid default is dropped. JsonSchemaData rejects the schema.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import structs

from sink_job.connect.errors import InvalidSchema, InvalidValue, rejecting
from sink_job.connect.json_decoder import value_reader
from sink_job.connect.json_encoder import with_default
from sink_job.connect.limits import MAX_NODES, Limits
from sink_job.connect.schema import Field, RegisteredSchema, Schema, SchemaType, of_subject
from sink_job.json.json_schema import documents as json_schema_documents
from sink_job.json.json_schema.documents import MAX_SHOWN, Node, looked_up, read_document, unsupported

if TYPE_CHECKING:
    from referencing._core import Resolver

NAMESPACE: Final = "io.confluent.connect.json"
ONE_OF: Final = f"{NAMESPACE}.OneOf"
ENUM: Final = f"{NAMESPACE}.Enum"
NULL_SYMBOL: Final = "<NULL>"


class _Properties(dict[str, tuple[object, "Resolver[Any]"]]):
    """Properties of an object with the resolver of the place of each."""

    def __init__(self) -> None:
        super().__init__()
        self.required: set[str] = set()


_NUMBERS: Final = {
    kind.value: kind
    for kind in (
        *(SchemaType.INT8, SchemaType.INT16, SchemaType.INT32, SchemaType.INT64),
        *(SchemaType.FLOAT32, SchemaType.FLOAT64, SchemaType.BYTES),
    )
}


def json_connect_schema(registered: RegisteredSchema, *, optional_properties: bool = False) -> Schema:
    """The schema of the values under a JSON Schema of a registry. `optional_properties`: a property that is not
    required is optional, as with Confluent's `use.optional.for.nonrequired=true`.

    Raises InvalidSchema if Connect has no equivalent."""
    resolver, node = read_document(registered)
    translation = _JsonSchemaTranslation(optional_properties)
    try:
        with rejecting("the JSON Schema"):
            schema = translation.schema(node, resolver)
    except InvalidSchema as error:
        raise InvalidSchema(f"{error}{translation.shown_place()}") from None
    schema = schema if registered.version is None else structs.replace(schema, version=registered.version)
    return of_subject(schema, registered)


@dataclass(slots=True)
class _Entered:
    """A node in progress. `name` is that of its object if a reference to it must use one; None for a node that is not
    an object. `objects` is the number of objects in progress around it."""

    name: str | None
    objects: int
    is_referred: bool = False


class _JsonSchemaTranslation:
    def __init__(self, optional_properties: bool) -> None:
        self.optional_properties = optional_properties
        self.limits = Limits()
        self.visits = Limits(10 * MAX_NODES)
        self.enclosing: dict[int, _Entered] = {}
        """The nodes in progress by their identity."""
        self.objects: list[_Entered] = []
        """The objects in progress, from the outermost one."""
        self.alternatives: dict[int, tuple[Node, list[object]]] = {}
        """The nodes with a list of types, and their alternatives, by the identity of the node."""
        self.place: list[str] = []
        """The names of the properties in progress."""

    def shown_place(self) -> str:
        """Where the translation has ended, for its error; empty outside of properties."""
        path = ".".join(self.place)
        shown = path if len(path) <= MAX_SHOWN else f"{path[:MAX_SHOWN]}…"
        return f" (in the property {shown})" if path else ""

    def schema(
        self, node: object, resolver: Resolver[Any], *, optional: bool = False, ref: str | None = None
    ) -> Schema:
        """The schema of `node`. `ref` is the reference to it, if there is one."""
        if not isinstance(node, dict):
            raise unsupported("a schema that is not an object")
        with self.limits.counted():
            if isinstance(node.get("$ref"), str):
                target, inner = looked_up(node["$ref"], resolver)
                return self.schema(target, inner, optional=optional, ref=node["$ref"])
            return self._entered(node, resolver, optional, ref)

    def _entered(self, node: Node, resolver: Resolver[Any], optional: bool, ref: str | None) -> Schema:
        """The schema of `node`, a reference if it is an object in progress."""
        same = self._same_objects(node, resolver)
        for each in same:
            if (found := self.enclosing.get(id(each))) is not None and found.name is not None:
                found.is_referred = True
                return Schema(SchemaType.REFERENCE, found.name, optional)
        properties = self._properties(node, resolver)
        name = json_schema_documents.text(node, "title") or ref or json_schema_documents.target(node) or "#"
        if properties and node.get("connect.type") != "map":
            return self._object(node, same, properties, optional, name)
        return self._no_object(node, resolver, properties, optional, name)

    def _same_objects(self, node: Node, resolver: Resolver[Any]) -> list[Node]:
        """`node`, and the nodes that describe the same object, because each refers to the next one."""
        found = {id(node): node}
        while (ref := json_schema_documents.target(node)) is not None:
            self.visits.count()
            target, resolver = looked_up(ref, resolver)
            if not isinstance(target, dict) or id(target) in found:
                break
            found[id(target)] = node = target
        return list(found.values())

    def _object(self, node: Node, same: list[Node], properties: _Properties, optional: bool, name: str) -> Schema:
        """The schema of an object. It is named `name` if it occurs in itself."""
        entered = _Entered(self._unused(name), len(self.objects))
        before = self._enter(same, entered)
        self.objects.append(entered)
        schema = self._annotated(self._struct(properties), node, optional)
        self.objects.pop()
        self._leave(before)
        hides = any(each.is_referred and each.name == schema.name for each in self.objects)
        return structs.replace(schema, name=entered.name) if entered.is_referred or hides else schema

    def _no_object(
        self, node: Node, resolver: Resolver[Any], properties: _Properties, optional: bool, name: str
    ) -> Schema:
        around = self.enclosing.get(id(node))
        if around is not None and around.objects == len(self.objects):
            raise unsupported("a schema that is not an object and contains itself")
        before = self._enter([node], _Entered(None, len(self.objects)))
        schema = self._content(node, resolver, properties, optional, name)
        self._leave(before)
        return schema

    def _enter(self, nodes: list[Node], entered: _Entered) -> dict[int, _Entered | None]:
        """Puts nodes in progress. Returns their entries before, for `_leave`."""
        before = {id(each): self.enclosing.get(id(each)) for each in nodes}
        self.enclosing |= dict.fromkeys(before, entered)
        return before

    def _leave(self, before: dict[int, _Entered | None]) -> None:
        for key, entered in before.items():
            if entered is None:
                del self.enclosing[key]
            else:
                self.enclosing[key] = entered

    def _unused(self, name: str) -> str:
        """`name`, with a number if it is that of an object in progress."""
        used = {each.name for each in self.objects}
        numbered = (f"{name}.{number}" for number in itertools.count(2))
        return next(each for each in itertools.chain([name], numbered) if each not in used)

    def _content(
        self, node: Node, resolver: Resolver[Any], properties: _Properties, optional: bool, ref: str
    ) -> Schema:
        alternatives = self._alternatives(node)
        if alternatives is not None and not json_schema_documents.describes_object(node):
            inner = json_schema_documents.only_other_than_null(alternatives)
            if inner is not None:
                return self.schema(inner, resolver, optional=True, ref=ref)
            if len(alternatives) == 1:
                return self.schema(alternatives[0], resolver, optional=optional, ref=ref)
            return self._annotated(self._union(alternatives, resolver), node, optional)
        if not properties and json_schema_documents.members_of_all(node):
            return self._annotated(self._first_of_all(node, resolver), node, optional)
        return self._annotated(self._of_kind(node, resolver, _kind(node)), node, optional)

    def _alternatives(self, node: Node) -> list[object] | None:
        """See `json_nodes.alternatives`. They have the same identity each time, which shows whether they are in
        progress."""
        types = node.get("type")
        if not isinstance(types, list):
            return json_schema_documents.alternatives(node)
        if id(node) not in self.alternatives:
            self.visits.count(len(types) * len(node))
            self.alternatives[id(node)] = node, json_schema_documents.alternatives(node) or []
        return self.alternatives[id(node)][1]

    def _properties(self, node: Node, resolver: Resolver[Any]) -> _Properties:
        """The properties of an object, also those that `allOf` and references add, each with the resolver of its
        place. None for a node that has alternatives and is not an object."""
        if self._alternatives(node) is not None and not json_schema_documents.describes_object(node):
            return _Properties()
        found = _Properties()
        pending: list[tuple[object, Resolver[Any]]] = [(node, resolver)]
        visited: set[int] = set()
        while pending:
            each, resolver = pending.pop()
            if not isinstance(each, dict) or id(each) in visited:
                continue
            visited.add(id(each))
            self.visits.count()
            if isinstance(each.get("$ref"), str):
                pending.append(looked_up(each["$ref"], resolver))
                continue
            own = each.get("properties")
            if isinstance(own, dict):
                self.visits.count(len(own))
                found.update({name: (value, resolver) for name, value in own.items()})
            found.required.update(json_schema_documents.required(each))
            pending += [(member, resolver) for member in reversed(json_schema_documents.members_of_all(each))]
        return found

    def _union(self, members: list[object], resolver: Resolver[Any]) -> Schema:
        others = [member for member in members if not json_schema_documents.is_null(member)]
        fields = tuple(
            Field(f"{ONE_OF}.field.{index}", self.schema(member, resolver, optional=True))
            for index, member in enumerate(others)
        )
        return Schema(SchemaType.STRUCT, ONE_OF, optional=len(others) < len(members), fields=fields)

    def _struct(self, properties: _Properties) -> Schema:
        fields = [(name, node, resolver) for name, (node, resolver) in properties.items()]
        fields.sort(key=_indexes(fields))
        return Schema(
            SchemaType.STRUCT,
            fields=tuple(
                Field(name, self._property(name, node, inner, is_required=name in properties.required))
                for name, node, inner in fields
            ),
        )

    def _property(self, name: str, node: object, resolver: Resolver[Any], *, is_required: bool) -> Schema:
        self.place.append(name)
        schema = self.schema(node, resolver, optional=self.optional_properties and not is_required)
        self.place.pop()
        return schema

    def _first_of_all(self, node: Node, resolver: Resolver[Any]) -> Schema:
        """`allOf` without properties: that of its members which JsonSchemaData prefers."""
        members = [
            *json_schema_documents.members_of_all(node),
            {key: value for key, value in node.items() if key != "allOf"},
        ]
        for preferred in (
            json_schema_documents.alternatives,
            json_schema_documents.symbols,
            lambda member: member.get("type"),
            lambda member: member.get("$ref"),
        ):
            for member in members:
                if isinstance(member, dict) and preferred(member) is not None:
                    return self.schema(member, resolver)
        raise unsupported("allOf without a member that has a type")

    def _of_kind(self, node: Node, resolver: Resolver[Any], kind: str) -> Schema:
        annotated = node.get("connect.type")
        match kind:
            case "enum":
                return Schema(SchemaType.STRING)
            case "boolean":
                return Schema(SchemaType.BOOLEAN)
            case "string":
                return Schema(SchemaType.BYTES if annotated == "bytes" else SchemaType.STRING)
            case "integer" | "number":
                return Schema(_number(kind, annotated))
            case "array":
                return self._array(node, resolver, annotated)
            case "object" if annotated == "map":
                return self._map(Schema(SchemaType.STRING), self.schema(node.get("additionalProperties"), resolver))
            case "object":
                return Schema(SchemaType.STRUCT)
        raise unsupported(f"the type {kind}")

    def _array(self, node: Node, resolver: Resolver[Any], annotated: object) -> Schema:
        items = node.get("items")
        if not isinstance(items, dict):
            raise unsupported("an array without a schema of its items")
        if annotated == "map" and isinstance(entry := items.get("properties"), dict):
            return self._map(*(self.schema(entry.get(each), resolver) for each in ("key", "value")))
        return Schema(SchemaType.ARRAY, values=self.schema(items, resolver))

    def _map(self, keys: Schema, values: Schema) -> Schema:
        return Schema(SchemaType.MAP, keys=keys, values=values)

    def _annotated(self, schema: Schema, node: Node, optional: bool) -> Schema:
        """The schema with what annotates it in `node`."""
        parameters = _parameters(schema, node)
        self.limits.parameters(parameters)
        self.limits.default(node.get("default"))
        schema = structs.replace(
            schema,
            name=schema.name or json_schema_documents.text(node, "title"),
            version=_version(node),
            doc=json_schema_documents.text(node, "description"),
            parameters=tuple(sorted(parameters.items())),
            optional=optional or schema.optional,
        )
        return _defaulted(schema, node.get("default"))


def _indexes(fields: Iterable[tuple[str, object, object]]) -> Callable[[tuple[str, object, object]], int]:
    """The order of fields: `connect.index`, else the position."""
    indexes = {
        name: index
        if isinstance(index := isinstance(node, dict) and node.get("connect.index"), int) and index is not False
        else position
        for position, (name, node, _) in enumerate(fields)
    }
    return lambda field: indexes[field[0]]


def _kind(node: Node) -> str:
    """The type, found by the keywords where it is not given; "enum" for an enumeration of texts."""
    given = node.get("type")
    if json_schema_documents.symbols(node) is not None and given in (None, "string"):
        return "enum"
    if isinstance(given, str):
        return given
    found = [kind for kind, keywords in json_schema_documents.KEYWORDS.items() if not keywords.isdisjoint(node)]
    if not found:
        raise unsupported("a schema without a type")
    return found[0]


def _number(kind: str, annotated: object) -> SchemaType:
    if annotated is None:
        return SchemaType.INT64 if kind == "integer" else SchemaType.FLOAT64
    if not isinstance(annotated, str) or annotated not in _NUMBERS:
        raise unsupported(f"a number with connect.type {annotated!r}")
    return _NUMBERS[annotated]


def _version(node: Node) -> int | None:
    value = node.get("connect.version")
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _parameters(schema: Schema, node: Node) -> dict[str, str]:
    given = node.get("connect.parameters", {})
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise unsupported("connect.parameters that are not an object of texts")
    symbols = json_schema_documents.symbols(node) if schema.type is SchemaType.STRING else None
    enum = {} if symbols is None else {ENUM: ""} | {f"{ENUM}.{each}": each for each in map(_symbol, symbols)}
    return schema.parameter | enum | given


def _symbol(value: object) -> str:
    if value is None:
        return NULL_SYMBOL
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _defaulted(schema: Schema, default: object) -> Schema:
    try:
        return schema if default is None else with_default(schema, value_reader(schema)(default))
    except (InvalidValue, InvalidSchema):
        return schema
