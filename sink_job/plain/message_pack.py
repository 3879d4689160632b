"""MessagePack: each value is one item, without a schema (https://github.com/msgpack/msgpack/blob/master/spec.md).

msgspec checks the structure first: it is not misled by a declared length, whereas msgpack allocates arrays of the
length that they declare. msgpack then decodes exactly: it reports every pair of a map and all digits of a timestamp.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgpack
import msgspec

from sink_job.api import enums
from sink_job.plain.schemaless import DUPLICATE_KEY, TOO_DEEP, Normalizer, RejectedItem, SchemalessConverter

_check: Final = msgspec.msgpack.Decoder(msgspec.Raw).decode


class MessagePackConverter(SchemalessConverter):
    """Converts values that are one MessagePack item each."""

    def __init__(self, fields: tuple[str, ...] = (), output: enums.OutputFormat = enums.OutputFormat.JSON) -> None:
        super().__init__(decode, fields, output)


def decode(value: bytes) -> object:
    """The item in `value`, normalized. Raises ValueError with the reason if it is rejected."""
    if not value:
        raise RejectedItem("the value is empty")
    try:
        _check(value)
        item = msgpack.unpackb(value, strict_map_key=False, object_pairs_hook=_map, ext_hook=_extension)
        return _normalized(item)
    except RejectedItem:
        raise
    except (RecursionError, msgpack.StackError):
        raise RejectedItem(TOO_DEEP) from None
    except UnicodeDecodeError:
        raise RejectedItem("a text in the value is not UTF-8") from None
    except ValueError as error:
        raise RejectedItem(f"the value is not MessagePack: {_reason(error)}") from None


def _reason(error: ValueError) -> str:
    return str(error).removeprefix("MessagePack data is malformed: ")


def _map(pairs: Sequence[tuple[Any, Any]]) -> object:
    """A map with text keys as a dict, another one as its pairs. Raises RejectedItem for a text that is a key twice."""
    if not {type(key) for key, _ in pairs} <= {str}:
        return pairs
    found = dict(pairs)
    if len(found) != len(pairs):
        raise RejectedItem(DUPLICATE_KEY)
    return found


def _extension(code: int, _: bytes) -> object:
    raise RejectedItem(f"the value contains the extension type {code}, which is not supported")


def _milliseconds(timestamp: msgpack.Timestamp) -> int:
    return int(timestamp.seconds * 1000 + timestamp.nanoseconds // 1_000_000)


_normalized: Final = Normalizer({msgpack.Timestamp: _milliseconds})
