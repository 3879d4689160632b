"""The one walk over an Avro type, for questions about all types in it.

A named type is one object wherever it is used, and a record can be in itself. So a walk visits each type once.
"""

from __future__ import annotations

from collections.abc import Iterator

from sink_job.avro.schema import AvroType


def inner_types(avro: AvroType) -> list[AvroType]:
    """The types directly in a type: of the fields of a record, of the items of an array or the values of a map, and the
    members of a union."""
    element = [] if avro.element is None else [avro.element]
    return [*(field.type for field in avro.fields), *element, *avro.members]


def all_types(avro: AvroType) -> Iterator[AvroType]:
    """The type and all types in it, each once, before those in it.

    >>> from sink_job.avro.schema import parse_avro
    >>> links = '{"type": "record", "name": "Link", "fields": [{"name": "next", "type": ["null", "Link"]}]}'
    >>> [each.kind for each in all_types(parse_avro(links))]
    ['record', 'union', 'null']
    """
    visited: set[int] = set()
    left = [avro]
    while left:
        each = left.pop()
        if id(each) not in visited:
            visited.add(id(each))
            yield each
            left += reversed(inner_types(each))
