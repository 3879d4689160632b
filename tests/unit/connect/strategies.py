"""Random pairs of schemas that are often compatible, and values under them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from msgspec import structs

from sink_job.connect import json_encoder
from sink_job.connect.schema import Field, Schema, SchemaType
from tests.unit.connect import oracle

SCALARS = [SchemaType(kind) for kind in ("boolean", "string", "bytes", *oracle.NUMBERS)]
INTEGERS = {SchemaType.INT8: 7, SchemaType.INT16: 15, SchemaType.INT32: 31, SchemaType.INT64: 63}
PARAMETERS: list[tuple[tuple[str, str], ...]] = [
    (),
    (("p", "1"),),
    (("connect.record.doc", "x"),),
    ((oracle.FIELD_DOC + "a", "x"),),
    ((oracle.ENUM, "E"), (f"{oracle.ENUM}.A", "A")),
    ((oracle.ENUM, "E"), (f"{oracle.ENUM}.A", "A"), (f"{oracle.ENUM}.B", "B")),
]


def mostly(usual: Any, *others: Any) -> st.SearchStrategy[Any]:
    """`usual` nine times of ten."""
    return st.integers(0, 9).flatmap(lambda n: st.sampled_from(others) if n == 9 and others else st.just(usual))


@st.composite
def schema_pairs(draw: st.DrawFn, depth: int = 3) -> tuple[Schema, Schema]:
    """Two schemas of one form, which differ in a few attributes."""
    source = draw(schemas(depth))
    return source, draw(changed(source))


@st.composite
def schemas(draw: st.DrawFn, depth: int) -> Schema:
    kinds = [*SCALARS, SchemaType.STRUCT, SchemaType.STRUCT, SchemaType.ARRAY, SchemaType.MAP] if depth else SCALARS
    kind = draw(st.sampled_from(kinds))
    schema = Schema(kind, name=draw(mostly(None, "n")), optional=draw(st.booleans()), version=1)
    match kind:
        case SchemaType.STRUCT:
            names = draw(st.lists(st.sampled_from("abcd"), unique=True, max_size=3))
            fields = tuple(Field(name, draw(schemas(depth - 1))) for name in names)
            schema = structs.replace(schema, fields=fields)
        case SchemaType.ARRAY:
            schema = structs.replace(schema, values=draw(schemas(depth - 1)))
        case SchemaType.MAP:
            keys = Schema(draw(st.sampled_from([SchemaType.STRING, SchemaType.INT32])))
            schema = structs.replace(schema, keys=keys, values=draw(schemas(depth - 1)))
    return draw(with_default(structs.replace(schema, parameters=draw(st.sampled_from(PARAMETERS)))))


@st.composite
def with_default(draw: st.DrawFn, schema: Schema) -> Schema:
    if draw(mostly(True, False)):
        return schema
    return json_encoder.with_default(schema, draw(values(schema, full=True)))


@st.composite
def changed(draw: st.DrawFn, schema: Schema) -> Schema:
    """A schema that `schema` may have evolved to."""
    if schema.type in SCALARS:
        schema = structs.replace(schema, type=draw(mostly(schema.type, *SCALARS)), default=None)
    fields = [Field(each.name, draw(changed(each.schema))) for each in schema.fields if draw(mostly(True, False))]
    missing = [name for name in "abcd" if name not in {each.name for each in schema.fields}]
    if schema.type is SchemaType.STRUCT and missing and draw(mostly(False, True)):
        fields.append(Field(missing[0], draw(schemas(1))))
    found = structs.replace(
        schema,
        name=draw(mostly(schema.name, "m", None)),
        optional=draw(mostly(True, False)),
        version=draw(st.integers(1, 3)),
        parameters=draw(mostly(schema.parameters, *PARAMETERS)),
        fields=tuple(fields),
        values=None if schema.values is None else draw(changed(schema.values)),
        default=None,
    )
    return draw(with_default(found))


def values(schema: Schema, *, full: bool) -> st.SearchStrategy[Any]:
    """Values under `schema`. `full`: no null, and no empty array or map."""
    found = _required_values(schema, full)
    return found if full or not schema.optional else st.none() | found


def _required_values(schema: Schema, full: bool) -> st.SearchStrategy[Any]:
    least = int(full)
    if schema.type in INTEGERS:
        size = 1 << INTEGERS[schema.type]
        return st.integers(-size, size - 1)
    match schema.type:
        case SchemaType.STRUCT:
            return st.fixed_dictionaries({each.name: values(each.schema, full=full) for each in schema.fields})
        case SchemaType.ARRAY:
            return st.lists(values(oracle.child(schema.values), full=full), min_size=least, max_size=2)
        case SchemaType.MAP:
            items = values(oracle.child(schema.values), full=full)
            if oracle.child(schema.keys).type is SchemaType.STRING:
                return st.dictionaries(st.text(max_size=2), items, min_size=least, max_size=2)
            return st.dictionaries(st.integers(0, 9), items, min_size=least, max_size=2).map(
                lambda found: [*found.items()]
            )
        case SchemaType.BOOLEAN:
            return st.booleans()
        case SchemaType.STRING:
            return st.text(max_size=3)
        case SchemaType.BYTES:
            return st.binary(max_size=3)
    return st.floats(width=32 if schema.type is SchemaType.FLOAT32 else 64, allow_nan=False)
