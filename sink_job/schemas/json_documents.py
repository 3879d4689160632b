"""The texts of a JSON Schema, parsed, and the references in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT7

from sink_job.schemas.depth import SCHEMA_TEXT_TOO_DEEP, check_schema_text
from sink_job.schemas.errors import InvalidSchema
from sink_job.schemas.json_reading import decode_json
from sink_job.schemas.model import RegisteredSchema

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
