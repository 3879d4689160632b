"""The schema that `spec.transforms` make of the schema of values: that of the columns of a topic."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from sink_job.api.enums import TransformType
from sink_job.api.errors import ConfigurationError
from sink_job.api.sections.transforms_section import Predicate, TransformSpec
from sink_job.connect.errors import InvalidValue
from sink_job.connect.logical_types import is_decimal
from sink_job.connect.schema import Schema, SchemaType
from sink_job.transforms.base import FILTERED, RecordOrigin
from sink_job.transforms.decoded.whole_values import check_transformable
from sink_job.transforms.factory import transform_of
from sink_job.transforms.typed_values import TypedValue

_EVENT: Final = {"op": "c", "after": {}}
"""A change event of Debezium, for Unwrap."""
_EMPTY: Final = {
    SchemaType.STRING: "0",
    SchemaType.BOOLEAN: False,
    SchemaType.FLOAT32: 0.0,
    SchemaType.FLOAT64: 0.0,
    SchemaType.BYTES: b"",
    SchemaType.STRUCT: {},
}


def transformed_schema(schema: Schema, specs: Sequence[TransformSpec], topic: str) -> Schema:
    """The schema of the transformed values of `topic`. Filters change none.

    Raises ConfigurationError for a transform that applies to some records of the topic only, and for one that cannot
    handle the schema; InvalidSchema for a schema that cannot be transformed.
    """
    check_transformable(schema)
    for number, spec in enumerate(specs):
        where = f"spec.transforms[{number}] ({spec.type})"
        if spec.type is TransformType.FILTER or (applies := _applies(spec.when, topic)) is False:
            continue
        if applies is None:
            raise ConfigurationError(
                f"{where} applies to some records of {topic} only, so they have several schemas: "
                "take the columns from an object"
            )
        try:
            schema = _changed(schema, spec, topic)
        except InvalidValue as error:
            raise ConfigurationError(f"{where} cannot change the schema of {topic}: {error}") from None
    return schema


def _changed(schema: Schema, spec: TransformSpec, topic: str) -> Schema:
    """The schema after one transform, which is applied to a value without content."""
    transform = transform_of(spec)
    assert transform is not None, "only a Filter has none"
    found = transform.typed(TypedValue(schema, _content(schema, spec)), RecordOrigin(topic, 0, 0, 0))
    assert found is not FILTERED, "the value is no tombstone"
    return found.schema


def _content(schema: Schema, spec: TransformSpec) -> object:
    if spec.type is TransformType.UNWRAP:
        return _EVENT
    if spec.type is TransformType.TIMESTAMP and spec.field is None:
        return None
    return Decimal(0) if is_decimal(schema) else _EMPTY.get(schema.type, 0)


def _applies(when: Predicate | None, topic: str) -> bool | None:
    """Whether a transform applies to the records of `topic` that have a value; None if that depends on the record."""
    if when is None:
        return True
    holds = (when.topic is None or re.fullmatch(when.topic, topic) is not None) and when.tombstone is not True
    if holds and (when.header is not None or when.field is not None):
        return None
    return holds is not when.negated
