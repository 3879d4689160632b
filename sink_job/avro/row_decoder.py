"""Reads Avro data record by record, strictly. It defines which values are valid and what they contain.

fastavro's compiled reader is not used on data: 10,000 nested records overflow the C stack, which kills the worker, and
it accepts negative indexes of enums and unions. Here the depth is limited, no length is trusted, and each index
is checked.

The reader is compiled once for each schema, as nested functions from the data and a position to the value and the
position after it. Values have no logical types: a decimal is bytes, dates and times are integers. A
member of a union of several types is `{"name of the member": value}`; a union of null and one type, or of one type, has
the value itself.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from sink_job.arrow.varints import read_long
from sink_job.avro.schema import INT_RANGE, AvroType
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.limits import VALUE_TOO_DEEP

Read = Callable[[bytes, int], tuple[object, int]]
"""Reads the value at a position of the data: the value, and the position after it. Raises ValueError or IndexError,
and RecursionError for data that is nested too deeply."""

_MIN_INT, _MAX_INT = INT_RANGE
_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")


class DatumReader:
    """Reads data of an Avro type."""

    def __init__(self, avro: AvroType) -> None:
        """Raises InvalidSchema for a type with an array whose items have no bytes: a few bytes could be 2^60 items."""
        self._read = _AvroRowCompiler().compile(avro)

    def read(self, data: bytes) -> object:
        """The value of a datum. Raises ValueError with the reason if `data` is not one datum of the type."""
        value, end = self.read_at(data, 0)
        if end != len(data):
            raise ValueError(f"the value has {len(data) - end} bytes after its Avro data")
        return value

    def read_at(self, data: bytes, at: int) -> tuple[object, int]:
        """The value of the datum that begins at `at`, and the position after it. Raises ValueError with the reason."""
        try:
            return self._read(data, at)
        except (IndexError, struct.error):
            raise ValueError(f"the value ends within its Avro data, after {len(data)} bytes") from None
        except RecursionError:
            raise ValueError(VALUE_TOO_DEEP) from None
        except ValueError as error:
            raise ValueError(f"the value is not valid Avro data: {error}") from None


def _read_int(data: bytes, at: int) -> tuple[object, int]:
    value, at = read_long(data, at)
    if not _MIN_INT <= value <= _MAX_INT:
        raise ValueError(f"{value} is outside the range of an int")
    return value, at


def _read_boolean(data: bytes, at: int) -> tuple[object, int]:
    byte = data[at]
    if byte > 1:
        raise ValueError(f"{byte} is not a boolean")
    return byte == 1, at + 1


def _read_float(data: bytes, at: int) -> tuple[object, int]:
    return _FLOAT.unpack_from(data, at)[0], at + 4


def _read_double(data: bytes, at: int) -> tuple[object, int]:
    return _DOUBLE.unpack_from(data, at)[0], at + 8


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = read_long(data, at)
    if size < 0:
        raise ValueError(f"{size} is not a length")
    return _slice(data, at, size)


def _slice(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    end = at + size
    if end > len(data):
        raise IndexError(end)
    return data[at:end], end


def _read_string(data: bytes, at: int) -> tuple[str, int]:
    value, end = _read_bytes(data, at)
    try:
        return value.decode(), end
    except UnicodeDecodeError:
        raise ValueError("a string is not UTF-8") from None


def _read_null(data: bytes, at: int) -> tuple[object, int]:
    return None, at


_PRIMITIVES: Final[dict[str, Read]] = {
    "null": _read_null,
    "boolean": _read_boolean,
    "int": _read_int,
    "long": read_long,
    "float": _read_float,
    "double": _read_double,
    "bytes": _read_bytes,
    "string": _read_string,
}


class _Later:
    """The function of a record while its fields are compiled."""

    function: Read

    def __call__(self, data: bytes, at: int) -> tuple[object, int]:
        return self.function(data, at)


class _AvroRowCompiler:
    """Compiles the functions of a type."""

    def __init__(self) -> None:
        self._records: dict[AvroType, _Later] = {}

    def compile(self, avro: AvroType) -> Read:
        match avro.kind:
            case "fixed":
                return _fixed(avro.size)
            case "enum":
                return _enum(avro.symbols)
            case "array":
                return self._array(avro)
            case "map":
                return _map(self.compile(avro.items))
            case "record":
                return self._record(avro)
            case "union":
                return self._union(avro)
        return _PRIMITIVES[avro.kind]

    def _record(self, avro: AvroType) -> Read:
        if avro in self._records:
            return self._records[avro]
        later = self._records[avro] = _Later()
        later.function = _record([(field.name, self.compile(field.type)) for field in avro.fields])
        return later.function

    def _array(self, avro: AvroType) -> Read:
        if can_be_empty(avro.items):
            raise InvalidSchema("the Avro schema has an array whose items have no bytes; it is not supported")
        return _array(self.compile(avro.items))

    def _union(self, avro: AvroType) -> Read:
        if avro.nullable is not None or avro.single is not None:
            return _branches([self.compile(member) for member in avro.members])
        members = [(member, self.compile(member)) for member in avro.members]
        return _branches([read if m.kind == "null" else _member(m.member_name, read) for m, read in members])


def can_be_empty(avro: AvroType, enclosing: tuple[AvroType, ...] = ()) -> bool:
    """Whether a datum of the type can have no bytes."""
    match avro.kind:
        case "null":
            return True
        case "fixed":
            return avro.size == 0
        case "record":
            inner = (*enclosing, avro)
            return avro not in enclosing and all(can_be_empty(field.type, inner) for field in avro.fields)
    return False


def _record(fields: list[tuple[str, Read]]) -> Read:
    def read(data: bytes, at: int) -> tuple[object, int]:
        found: dict[str, object] = {}
        for name, field in fields:
            found[name], at = field(data, at)
        return found, at

    return read


def _blocks(data: bytes, at: int) -> tuple[int, int]:
    """The number of items of the next block of an array or map. Its size in bytes, if present, is skipped."""
    count, at = read_long(data, at)
    if count >= 0:
        return count, at
    return -count, read_long(data, at)[1]


def _array(item: Read) -> Read:
    def read(data: bytes, at: int) -> tuple[object, int]:
        found: list[object] = []
        count, at = _blocks(data, at)
        while count:
            for _ in range(count):
                value, at = item(data, at)
                found.append(value)
            count, at = _blocks(data, at)
        return found, at

    return read


def _map(value: Read) -> Read:
    def read(data: bytes, at: int) -> tuple[object, int]:
        found: dict[str, object] = {}
        count, at = _blocks(data, at)
        while count:
            for _ in range(count):
                key, at = _read_string(data, at)
                found[key], at = value(data, at)
            count, at = _blocks(data, at)
        return found, at

    return read


def _branches(reads: list[Read]) -> Read:
    def read(data: bytes, at: int) -> tuple[object, int]:
        branch, at = read_long(data, at)
        if not 0 <= branch < len(reads):
            raise ValueError(f"a union has no branch {branch}")
        return reads[branch](data, at)

    return read


def _member(name: str, branch: Read) -> Read:
    def read(data: bytes, at: int) -> tuple[object, int]:
        value, at = branch(data, at)
        return {name: value}, at

    return read


def _enum(symbols: list[str]) -> Read:
    def read(data: bytes, at: int) -> tuple[object, int]:
        index, at = read_long(data, at)
        if not 0 <= index < len(symbols):
            raise ValueError(f"an enum has no symbol {index}")
        return symbols[index], at

    return read


def _fixed(size: int) -> Read:
    def read(data: bytes, at: int) -> tuple[object, int]:
        return _slice(data, at, size)

    return read
