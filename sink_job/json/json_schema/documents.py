"""The keywords of a JSON Schema: what a node describes, without its references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT7

from sink_job.connect.errors import InvalidSchema
from sink_job.connect.json_decoder import decode_json
from sink_job.connect.limits import SCHEMA_TEXT_TOO_DEEP, check_schema_text
from sink_job.connect.schema import RegisteredSchema

if TYPE_CHECKING:
    from referencing._core import Resolver


MAX_SHOWN: Final = 200
"""Maximum length of a name in an error."""
_MALFORMED: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What `referencing` raises for keywords of a wrong type."""


def read_document(registered: RegisteredSchema) -> tuple[Resolver[Any], object]:
    """The parsed schema, and what resolves the references in it."""
    texts = {reference.name: reference.text for reference in registered.references} | {"": registered.text}
    resources = {name: Resource.from_contents(_parsed(text), DRAFT7) for name, text in texts.items()}
    registry = _crawled(Registry[Any]().with_resources(resources.items()))
    resource = resources[""]
    try:
        return registry.resolver_with_root(resource), resource.contents
    except _MALFORMED as error:
        raise unsupported(f"a malformed keyword ({error})") from None


def _crawled(registry: Registry[Any]) -> Registry[Any]:
    """The registry with all identifiers found, which each reference would otherwise do. A malformed keyword counts
    only if a reference needs it."""
    try:
        return registry.crawl()
    except _MALFORMED:
        return registry


def _parsed(text: str) -> Any:
    try:
        found = decode_json(text)
    except RecursionError:
        raise InvalidSchema(f"the JSON Schema {SCHEMA_TEXT_TOO_DEEP}") from None
    except msgspec.DecodeError as error:
        raise InvalidSchema(f"the JSON Schema is not JSON: {error}") from None
    check_schema_text(text, "the JSON Schema")
    if not isinstance(found, (dict, bool)):
        raise InvalidSchema("the JSON Schema is neither an object nor a boolean")
    return found


def looked_up(ref: str, resolver: Resolver[Any]) -> tuple[object, Resolver[Any]]:
    try:
        found = resolver.lookup(ref)
    except (Unresolvable, *_MALFORMED):  # whose message has the whole schema
        shown = ref if len(ref) <= MAX_SHOWN else f"{ref[:MAX_SHOWN]}…"
        raise InvalidSchema(
            f"the JSON Schema refers to {shown!r}, which cannot be found in it and in its references"
        ) from None
    return found.contents, found.resolver


def unsupported(what: str) -> InvalidSchema:
    return InvalidSchema(f"the JSON Schema has no equivalent in Kafka Connect: {what} is not supported")


Node = Mapping[str, Any]

KEYWORDS: Final = {
    "object": {
        *("properties", "required", "minProperties", "maxProperties", "dependencies"),
        *("patternProperties", "additionalProperties", "propertyNames"),
    },
    "array": {"items", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
    "string": {"minLength", "maxLength", "pattern", "format"},
}
_CHANGING: Final = KEYWORDS["object"] | {"oneOf", "anyOf", "enum", "connect.type"}
"""Keywords beside an `allOf` of one reference which make it another schema than the referred one."""


def alternatives(node: Node) -> list[object] | None:
    """The members of `oneOf` or `anyOf`, or a schema for each type of a list of types."""
    for key in ("oneOf", "anyOf"):
        if isinstance(node.get(key), list):
            return list(node[key])
    types = node.get("type")
    if not isinstance(types, list):
        return None
    annotations = {"title", "description", "default"}
    return [{key: value for key, value in node.items() if key not in annotations} | {"type": each} for each in types]


def members_of_all(node: Node) -> list[object]:
    found = node.get("allOf")
    return found if isinstance(found, list) else []


def is_null(node: object) -> bool:
    return isinstance(node, dict) and node.get("type") == "null"


def only_other_than_null(members: list[object]) -> object:
    others = [member for member in members if not is_null(member)]
    return others[0] if len(members) == 2 and len(others) == 1 else None


def describes_object(node: Node) -> bool:
    """True for an object with alternatives beside its properties; False where it is only one of several types."""
    if isinstance(node.get("type"), list):
        return False
    return not KEYWORDS["object"].isdisjoint(node) or bool(members_of_all(node))


def target(node: Node) -> str | None:
    """The reference to the object that `node` describes: its own, or that of an `allOf` of one member beside which
    there are only annotations."""
    if isinstance(node.get("$ref"), str):
        return str(node["$ref"])
    members = members_of_all(node)
    if len(members) != 1 or not _CHANGING.isdisjoint(node) or node.get("type", "object") != "object":
        return None
    ref = members[0].get("$ref") if isinstance(members[0], dict) else None
    return ref if isinstance(ref, str) else None


def text(node: Node, key: str) -> str | None:
    value = node.get(key)
    return value if isinstance(value, str) else None


def required(node: Node) -> list[str]:
    """The names of the required properties."""
    found = node.get("required")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def symbols(node: Node) -> list[object] | None:
    found = node.get("enum")
    return found if isinstance(found, list) else None
