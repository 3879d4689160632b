"""Protobuf schemas as Connect's, as io.confluent.connect.protobuf.ProtobufData.toConnectSchema makes them with its
default settings (Confluent Platform 8).

- All fields are optional. Unsigned integers are int64, enums are strings.
- A oneof is a struct with a field for each member; it comes before the other fields.
- Wrappers such as google.protobuf.StringValue are structs with the field `value`, except as the whole message.
- google.protobuf.Timestamp, google.type.Date, google.type.TimeOfDay and confluent.type.Decimal are logical types.

Differences from ProtobufData, on purpose: of messages that have the same short name in different scopes, each has its
full name, because a reference needs it. An unset field of an edition with explicit presence is null.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor

from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.limits import Limits
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.protobuf.files import is_map, real_oneofs, union_name

NAMESPACE: Final = "io.confluent.connect.protobuf"
TAG: Final = f"{NAMESPACE}.Tag"
ENUM: Final = f"{NAMESPACE}.Enum"
UNION: Final = f"{NAMESPACE}.Union"
TYPE: Final = f"{NAMESPACE}.Type"

_F: Final = FieldDescriptor
_SCALARS: Final[Mapping[int, SchemaType]] = {
    _F.TYPE_INT32: SchemaType.INT32,
    _F.TYPE_SINT32: SchemaType.INT32,
    _F.TYPE_SFIXED32: SchemaType.INT32,
    _F.TYPE_UINT32: SchemaType.INT64,
    _F.TYPE_FIXED32: SchemaType.INT64,
    _F.TYPE_INT64: SchemaType.INT64,
    _F.TYPE_UINT64: SchemaType.INT64,
    _F.TYPE_SINT64: SchemaType.INT64,
    _F.TYPE_FIXED64: SchemaType.INT64,
    _F.TYPE_SFIXED64: SchemaType.INT64,
    _F.TYPE_FLOAT: SchemaType.FLOAT32,
    _F.TYPE_DOUBLE: SchemaType.FLOAT64,
    _F.TYPE_BOOL: SchemaType.BOOLEAN,
    _F.TYPE_STRING: SchemaType.STRING,
    _F.TYPE_BYTES: SchemaType.BYTES,
}
_NAMED_TYPES: Final[Mapping[int, str]] = {
    _F.TYPE_SINT32: "sint32",
    _F.TYPE_SFIXED32: "sfixed32",
    _F.TYPE_UINT32: "uint32",
    _F.TYPE_FIXED32: "fixed32",
    _F.TYPE_UINT64: "uint64",
    _F.TYPE_SINT64: "sint64",
    _F.TYPE_FIXED64: "fixed64",
    _F.TYPE_SFIXED64: "sfixed64",
}
"""The types that are kept as a parameter, because Connect's type does not determine them."""

SMALL: Final = {"int8": SchemaType.INT8, "int16": SchemaType.INT16}

DECIMAL: Final = "confluent.type.Decimal"
LOGICAL: Final[Mapping[str, tuple[SchemaType, str, Mapping[str, int]]]] = {
    "google.protobuf.Timestamp": (
        SchemaType.INT64,
        logical_types.TIMESTAMP,
        {"seconds": _F.TYPE_INT64, "nanos": _F.TYPE_INT32},
    ),
    "google.type.Date": (
        SchemaType.INT32,
        logical_types.DATE,
        dict.fromkeys(("year", "month", "day"), _F.TYPE_INT32),
    ),
    "google.type.TimeOfDay": (
        SchemaType.INT32,
        logical_types.TIME,
        dict.fromkeys(("hours", "minutes", "seconds", "nanos"), _F.TYPE_INT32),
    ),
    DECIMAL: (
        SchemaType.BYTES,
        logical_types.DECIMAL,
        {"value": _F.TYPE_BYTES, "precision": _F.TYPE_UINT32, "scale": _F.TYPE_INT32},
    ),
}
"""Messages that are logical types: the type and name of the schema, and the types of the fields that they must have. A
reference of a schema can define a message of such a name with other fields."""

WRAPPERS: Final = {
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}


def connect_schema(message: Descriptor, version: int | None = None) -> Schema:
    """The schema of a message. `version` is its version in its subject, None if no subject is known.

    Raises InvalidSchema if Connect's data model has no equivalent.
    """
    if message.full_name in WRAPPERS:
        return Schema(_wrapped(message), version=version)
    return _ProtobufTranslation(message).message(message, version=version)


def _wrapped(message: Descriptor) -> SchemaType:
    """The type of the value of a wrapper."""
    fields = _singular(message)
    if "value" not in fields or fields["value"] not in _SCALARS:
        raise _unsupported(f"{message.full_name} without a field value of its usual type")
    return _SCALARS[fields["value"]]


class _ProtobufTranslation:
    def __init__(self, root: Descriptor) -> None:
        self.names = _names(root)
        self.limits = Limits()
        self.enclosing: list[str] = []

    def message(
        self, message: Descriptor, *, optional: bool = False, version: int | None = None, tag: int | None = None
    ) -> Schema:
        name = self.names[message.full_name]
        if message.full_name in self.enclosing:
            return Schema(SchemaType.REFERENCE, name, optional, parameters=_parameters(tag))
        with self.limits.counted():
            self.enclosing.append(message.full_name)
            oneofs = real_oneofs(message)
            fields = [Field(union_name(oneof), self._union(oneof)) for oneof in oneofs]
            members = {field.name for oneof in oneofs for field in oneof.fields}
            fields += [Field(field.name, self.field(field)) for field in message.fields if field.name not in members]
            self.enclosing.pop()
        if len({field.name for field in fields}) < len(fields):
            raise _unsupported(f"message {message.full_name} with a field that has the name of the union of a oneof")
        return Schema(SchemaType.STRUCT, name, optional, version, parameters=_parameters(tag), fields=tuple(fields))

    def _union(self, oneof: OneofDescriptor) -> Schema:
        with self.limits.counted():
            fields = tuple(Field(field.name, self.field(field)) for field in oneof.fields)
        return Schema(SchemaType.STRUCT, f"{UNION}.{oneof.name}", optional=True, fields=fields)

    def field(self, field: FieldDescriptor) -> Schema:
        """The schema of a field."""
        if is_map(field):
            return self._map(field)
        if not field.is_repeated:
            return self._single(field, field.number)
        with self.limits.counted():
            items = self._single(field, None)
        return Schema(SchemaType.ARRAY, optional=True, parameters=_parameters(field.number), values=items)

    def _map(self, field: FieldDescriptor) -> Schema:
        entry = field.message_type
        with self.limits.counted():
            keys, values = (self.field(each) for each in entry.fields)
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", entry.name.removesuffix("Entry")).lower()
        given = _parameters(field.number)
        return Schema(SchemaType.MAP, name, optional=True, parameters=given, keys=keys, values=values)

    def _single(self, field: FieldDescriptor, tag: int | None) -> Schema:
        """The schema of a field, or of an item of a repeated one, which has no `tag`."""
        match field.type:
            case _F.TYPE_MESSAGE if field.message_type.full_name in LOGICAL:
                return _logical(field, tag)
            case _F.TYPE_MESSAGE:
                return self.message(field.message_type, optional=True, tag=tag)
            case _F.TYPE_GROUP:
                raise _unsupported(f"the group {field.full_name}")
            case _F.TYPE_ENUM:
                return _enum(field, tag)
        with self.limits.counted():
            given = _parameters(tag, _type_parameter(field))
            return Schema(scalar_type(field), optional=True, parameters=given)


def _names(root: Descriptor) -> dict[str, str]:
    """The name of the struct for each message that a message contains, by its full name."""
    found = {root.full_name: root}
    to_visit = [root]
    while to_visit:
        for field in to_visit.pop().fields:
            inner = field.message_type
            if inner is not None and inner.full_name not in found:
                found[inner.full_name] = inner
                to_visit.append(inner)
    entries = {field.message_type.full_name for message in found.values() for field in message.fields if is_map(field)}
    count = Counter(message.name for name, message in found.items() if name not in entries)
    return {name: name if count[message.name] > 1 else message.name for name, message in found.items()}


def _parameters(tag: int | None, others: Mapping[str, str] = MappingProxyType({})) -> tuple[tuple[str, str], ...]:
    tags = {} if tag is None else {TAG: str(tag)}
    return tuple(sorted({**others, **tags}.items()))


def _type_parameter(field: FieldDescriptor) -> dict[str, str]:
    name = _NAMED_TYPES.get(field.type)
    return {} if name is None or scalar_type(field) in SMALL.values() else {TYPE: name}


def scalar_type(field: FieldDescriptor) -> SchemaType:
    """The type of a field that is neither a message nor an enum."""
    found = _SCALARS[field.type]
    if found is SchemaType.INT32:
        return SMALL.get(_meta(field).get("connect.type", ""), found)
    return found


def _enum(field: FieldDescriptor, tag: int | None) -> Schema:
    enum = field.enum_type
    given = {ENUM: enum.name} | {f"{ENUM}.{value.name}": str(value.number) for value in enum.values}
    return Schema(SchemaType.STRING, enum.name, True, parameters=_parameters(tag, given))


def _logical(field: FieldDescriptor, tag: int | None) -> Schema:
    message = field.message_type
    kind, name, fields = LOGICAL[message.full_name]
    if fields.items() - _singular(message).items():
        raise _unsupported(f"{message.full_name} without the fields {', '.join(fields)} of their usual types")
    given = _decimal_parameters(field) if message.full_name == DECIMAL else {}
    return Schema(kind, name, True, logical_types.VERSION, parameters=_parameters(tag, given))


def _singular(message: Descriptor) -> dict[str, int]:
    """The type of each field that is not repeated."""
    return {field.name: field.type for field in message.fields if not field.is_repeated}


def _decimal_parameters(field: FieldDescriptor) -> dict[str, str]:
    meta = _meta(field)
    precision = _integer(meta.get("precision"))
    return {logical_types.SCALE: str(_integer(meta.get("scale")) or 0)} | (
        {} if precision is None else {"connect.decimal.precision": str(precision)}
    )


def _integer(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[+-]?[0-9]{1,9}", text) else None


def _meta(field: FieldDescriptor) -> dict[str, str]:
    """The parameters in the option `(confluent.field_meta)`, which Connect's producers write."""
    options = field.GetOptions().SerializeToString()
    return {each.key: each.value for each in _OPTIONS.FromString(options).field_meta.params} if options else {}


def _options_class() -> Any:
    """A class for google.protobuf.FieldOptions that knows this option alone."""
    file = descriptor_pb2.FileDescriptorProto(name="options.proto", package="s3sink")
    options, meta, entry = (file.message_type.add(name=name) for name in ("Options", "Meta", "Param"))
    single, repeated = _F.LABEL_OPTIONAL, _F.LABEL_REPEATED
    options.field.add(name="field_meta", number=1088, label=single, type=_F.TYPE_MESSAGE, type_name=".s3sink.Meta")
    meta.field.add(name="params", number=2, label=repeated, type=_F.TYPE_MESSAGE, type_name=".s3sink.Param")
    for number, name in enumerate(("key", "value"), start=1):
        entry.field.add(name=name, number=number, label=single, type=_F.TYPE_STRING)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("s3sink.Options"))


_OPTIONS: Final = _options_class()


def _unsupported(what: str) -> InvalidSchema:
    return InvalidSchema(f"it has no equivalent in Kafka Connect: {what} is not supported")
