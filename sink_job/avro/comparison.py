"""Compares Avro schemas by what they mean: registries write the same schema in different texts.

Apicurio returns a text as org.apache.avro.Schema.toString writes it: a name and its namespace apart, names relative to
the enclosing namespace, and `{"type": "long"}` as `"long"`. Confluent's registry returns the text as it was registered.
"""

from __future__ import annotations

import msgspec

from sink_job.avro.schema import NAMED, AvroType, parse_all
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.schema import RegisteredSchema


def is_same_avro(one: RegisteredSchema, other: RegisteredSchema) -> bool:
    """Whether the schemas, and their references one by one, are parsed to the same types. Decoders and Connect's
    schemas are made from these types alone. False if one of them is invalid."""
    if [each.name for each in one.references] != [each.name for each in other.references]:
        return False
    try:
        return _normal(one) == _normal(other)
    except InvalidSchema:
        return False


def _normal(schema: RegisteredSchema) -> list[object]:
    seen: set[str] = set()
    return [_type(each, seen) for each in parse_all([*(each.text for each in schema.references), schema.text])]


def _type(avro: AvroType, seen: set[str]) -> object:
    """All that a type consists of; only its name if it is one of `seen`."""
    if avro.kind in NAMED:
        if avro.name in seen:
            return avro.name
        seen.add(avro.name)
    return (
        avro.kind,
        avro.name,
        avro.doc,
        _json(avro.properties),
        [(each.name, each.doc, _json(each.default), _type(each.type, seen)) for each in avro.fields],
        avro.symbols,
        avro.default,
        avro.size,
        avro.element and _type(avro.element, seen),
        [_type(member, seen) for member in avro.members],
    )


def _json(value: object) -> bytes | None:
    """As a text, because `1` and `true` are equal in Python."""
    return None if value is msgspec.UNSET else msgspec.json.encode(value, order="sorted")
