"""The types that ptars gets: other messages with the same binary form (see `sink_job.protobuf.column_decoder`)."""

from __future__ import annotations

from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from sink_job.arrow.columnar import MAX_DEPTH, NotColumnar
from sink_job.protobuf.files import is_map

_F: Final = FieldDescriptor
_PACKAGE: Final = "s3sink"
_OTHER_TYPES: Final = {_F.TYPE_STRING: _F.TYPE_BYTES, _F.TYPE_ENUM: _F.TYPE_INT32}
MAX_COLUMNS: Final = 5_000
"""Maximum number of columns of a batch."""


def reading_message(message: Descriptor) -> Descriptor:
    """The message that ptars gets instead of `message`. Its fields have the same numbers.

    Raises NotColumnar if the type is not read column-wise.
    """
    _check(message, [0], ())
    file = descriptor_pb2.FileDescriptorProto(name="reading.proto", package=_PACKAGE, syntax="proto3")
    names: dict[str, str] = {}
    _add(file, message, names)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return pool.FindMessageTypeByName(f"{_PACKAGE}.{names[message.full_name]}")


def columns_of(message: Descriptor) -> list[FieldDescriptor]:
    """The fields of a message in the order of its columns: ptars sorts them by number."""
    return sorted(message.fields, key=lambda field: int(field.number))


def has_required(message: Descriptor) -> bool:
    """Whether a message that is read column-wise, or a message in it, has a required field of proto2."""
    inner = [field.message_type for field in message.fields if field.message_type is not None]
    return any(field.is_required for field in message.fields) or any(map(has_required, inner))


def _check(message: Descriptor, columns: list[int], enclosing: tuple[str, ...]) -> None:
    if message.full_name in enclosing or len(enclosing) > MAX_DEPTH:
        raise NotColumnar("a message is recursive or deep")
    if not message.fields:
        raise NotColumnar("a message has no fields")
    for field in message.fields:
        columns[0] += 1
        if columns[0] > MAX_COLUMNS:
            raise NotColumnar("a message has too many columns")
        if field.message_type is not None:
            _check(field.message_type, columns, (*enclosing, message.full_name))
        if is_map(field):
            _check_entry(field.message_type)


def _check_entry(entry: Descriptor) -> None:
    for field in entry.fields:
        if field.type not in (_F.TYPE_MESSAGE, _F.TYPE_GROUP) and field.default_value:
            raise NotColumnar("an entry of a map has a default")


def _add(file: Any, message: Descriptor, names: dict[str, str], *, is_entry: bool = False) -> None:
    if message.full_name in names:
        return
    names[message.full_name] = name = f"M{len(names)}"
    added = descriptor_pb2.DescriptorProto(name=name)
    for position, field in enumerate(columns_of(message)):
        if field.message_type is not None:
            _add(file, field.message_type, names, is_entry=is_map(field))
        _add_field(added, field, f"f{position}", names, is_entry=is_entry)
    file.message_type.append(added)


def _add_field(
    message: descriptor_pb2.DescriptorProto, field: FieldDescriptor, name: str, names: dict[str, str], *, is_entry: bool
) -> None:
    label = _F.LABEL_REPEATED if field.is_repeated else _F.LABEL_OPTIONAL
    kind = _OTHER_TYPES.get(field.type, field.type)
    added = message.field.add(name=name, number=field.number, label=label, type=kind)
    if field.message_type is not None:
        added.type_name = f".{_PACKAGE}.{names[field.message_type.full_name]}"
    elif field.has_presence and not is_entry:
        added.proto3_optional = True
        added.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"o{name}")
