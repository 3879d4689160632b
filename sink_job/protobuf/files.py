"""The messages of a compiled Protobuf schema.

A map is an ordinary repeated message here: `map_entry` is removed from the descriptors, which does not change the
binary form. So the entries of a map keep their order, which they lose in a map of Python's protobuf.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor

from sink_job.connect.errors import InvalidSchema, InvalidValue

_BASE_SIZE: Final = 4096
_SIZE_RATIO: Final = 25
"""The size in bytes of the messages for a byte of their descriptors; measured: 12 to 22."""


class _Message(NamedTuple):
    """A message and the messages in it that message indexes count."""

    name: str
    nested: list[_Message]


class ProtobufFiles:
    """The files of a serialised `FileDescriptorSet`, each after those that it imports. The last one is the schema."""

    def __init__(self, descriptor_set: bytes) -> None:
        """Raises InvalidSchema if the files are not valid, or the schema contains no message."""
        self.size = _BASE_SIZE + _SIZE_RATIO * len(descriptor_set)
        """The size in bytes, estimated."""
        files = descriptor_pb2.FileDescriptorSet.FromString(descriptor_set).file
        root = files[-1]
        if not root.message_type:
            raise InvalidSchema("it has no message")
        self._messages = [_counted(message) for message in root.message_type]
        self._root_name, self._package = root.name, root.package
        self._names = sorted(_full_names(root.message_type, root.package))
        self._pool = descriptor_pool.DescriptorPool()
        for file in files:
            _remove_map_entries(file.message_type)
            self._add(file)

    def _add(self, file: Any) -> None:
        try:
            self._pool.AddSerializedFile(file.SerializeToString())
        except TypeError as error:
            raise InvalidSchema(f"its file {file.name} is not valid: {error}") from None

    def selected(self, selector: tuple[int, ...] | int | str) -> Descriptor:
        """The message with Confluent's message indexes, a position of AWS Glue, or a name of Apicurio.

        Raises InvalidValue if there is no such message.
        """
        match selector:
            case int():
                return self.at_position(selector)
            case str():
                return self.at_top(selector)
        return self.at(selector)

    def at_position(self, position: int) -> Descriptor:
        """The message with this position, from 0 on, in the full names of all messages, sorted: nested ones, groups and
        the entries of maps are counted.

        Source: com.amazonaws.services.schemaregistry.serializers.protobuf.MessageIndexFinder. Raises InvalidValue if
        there is no such message.
        """
        if not 0 <= position < len(self._names):
            raise InvalidValue(f"the schema has no message with the message index {position} of AWS Glue")
        return self._pool.FindMessageTypeByName(self._names[position])

    def at_top(self, name: str) -> Descriptor:
        """The message with a simple name, such as `Flight`, that is in no other message.

        Source: FileDescriptor.findMessageTypeByName of protobuf-java, with which Apicurio's deserializer finds it.
        Raises InvalidValue if there is no such message.
        """
        if name not in (message.name for message in self._messages):
            raise InvalidValue(f"the schema has no message {name[:60]!r} outside of other messages")
        return self._pool.FindMessageTypeByName(f"{self._package}.{name}" if self._package else name)

    def at(self, indexes: tuple[int, ...]) -> Descriptor:
        """The message with Confluent's message indexes: the index of a message in the file, then of one in it, and so
        on. Groups and the entries of maps are not counted.

        Source: io.confluent.kafka.schemaregistry.protobuf.ProtobufSchema.toMessageName. Raises InvalidValue if there
        is no such message.
        """
        names = [self._package] if self._package else []
        messages = self._messages
        for index in indexes:
            if not 0 <= index < len(messages):
                raise InvalidValue(f"the schema has no message with the message indexes {list(indexes)}")
            names.append(messages[index].name)
            messages = messages[index].nested
        return self._pool.FindMessageTypeByName(".".join(names))

    def named(self, full_name: str) -> Descriptor:
        """The message of the schema with a full name, such as `example.Flight`. Messages of other files do not count.

        Raises InvalidSchema if there is none.
        """
        try:
            found = self._pool.FindMessageTypeByName(full_name)
        except KeyError:
            found = None
        if found is None or found.file.name != self._root_name:
            names = ", ".join(self._names[:_MAX_SHOWN]) + (", …" if len(self._names) > _MAX_SHOWN else "")
            raise InvalidSchema(f"it has no message {full_name}; its messages: {names}")
        return found


_MAX_SHOWN: Final = 10
"""The maximum number of messages that an error names."""


def _full_names(messages: Any, package: str) -> Iterator[str]:
    for message in messages:
        name = f"{package}.{message.name}" if package else message.name
        yield name
        yield from _full_names(message.nested_type, name)


def _counted(message: Any) -> _Message:
    groups = {field.type_name.rpartition(".")[2] for field in message.field if field.type == FieldDescriptor.TYPE_GROUP}
    nested = [each for each in message.nested_type if not each.options.map_entry and each.name not in groups]
    return _Message(message.name, [_counted(each) for each in nested])


def _remove_map_entries(messages: Any) -> None:
    for message in messages:
        message.options.ClearField("map_entry")
        _remove_map_entries(message.nested_type)


def message_class(message: Descriptor) -> Any:
    """The class of the messages of a type."""
    return message_factory.GetMessageClass(message)


def real_oneofs(message: Descriptor) -> list[OneofDescriptor]:
    """The oneofs of a message without those that stand for an `optional` field of proto3."""
    proto = descriptor_pb2.DescriptorProto()
    message.CopyToProto(proto)
    synthetic = {field.oneof_index for field in proto.field if field.proto3_optional}
    return [oneof for oneof in message.oneofs if oneof.index not in synthetic]


def union_name(oneof: OneofDescriptor) -> str:
    """The name of the field that Connect has for a oneof."""
    return f"{oneof.name}_{oneof.index}"


def is_map(field: FieldDescriptor) -> bool:
    """True for a field that is a map in Connect. Source: ProtobufData.isMapDescriptor, which compares names."""
    entry = field.message_type
    if not field.is_repeated or entry is None or not entry.name.endswith("Entry"):
        return False
    return [each.name for each in entry.fields] == ["key", "value"] and not any(e.is_repeated for e in entry.fields)
