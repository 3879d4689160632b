"""The wire format of values by producers with a schema registry: finds the schema id of each record and its payload.

| layout | in the value | in a header |
|---|---|---|
| Confluent | 0, 4-byte id | `__value_schema_id`: 1, 16-byte GUID |
| Apicurio | 0, 4-byte id; or 0, 8-byte id, the first 4 bytes 0 | `apicurio.value.contentId`, `….globalId`: 8-byte id |
| Glue | 3, compression (0: none, 5: zlib), 16-byte UUID | none |

Integers are big-endian. For keys the header names contain `key`. Sources: Confluent's `SchemaId`, Apicurio's
`KafkaSerdeHeaders`, `AvroSerdeHeaders` and `OptimisticFallbackIdHandler` (ids are positive and below 2^31), Glue's
`AWSSchemaRegistryConstants`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sink_job.api.enums import ApicurioIdType, SchemaIdLocation
from sink_job.api.sections.registry_section import WireFormatSettings
from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.arrays import Bytes, Codes, Integers, Mask
from sink_job.converters.protobuf_message_index import name_selector
from sink_job.records.fields import Rejections

MAX_UNCOMPRESSED: Final = 64 * 1024 * 1024
"""Maximum size in bytes of a payload that Glue's serializer compressed. A small value can expand to gigabytes."""

_GUID: Final = 16


class Layout(StrEnum):
    """The serializer whose wire format the values have."""

    CONFLUENT = "Confluent"
    APICURIO = "Apicurio"
    GLUE = "Glue"


class _Prefix(NamedTuple):
    """The start of a value in wire format: `magic`, `gap` further bytes, an id of `width` bytes."""

    magic: int
    width: int
    gap: int = 0

    @property
    def size(self) -> int:
        return 1 + self.gap + self.width


_PREFIXES: Final = {
    Layout.CONFLUENT: _Prefix(0, 4),
    Layout.APICURIO: _Prefix(0, 4),
    Layout.GLUE: _Prefix(3, _GUID, gap=1),
}
_WIDE: Final = _Prefix(0, 8)
"""Apicurio's 8-byte ids (serializers 2.x)."""
_GLOBAL: Final = "global-"


@dataclass(frozen=True, slots=True)
class InWireFormat:
    """The schema ids and payloads of a batch.

    `codes`: for each row the index of its id in `ids`, -1 for a rejected row. `ids`: the distinct ids as text (decimal
    numbers, UUIDs; a global id of Apicurio as `global-<n>`), in the order of their first rows. `payload`: the bytes
    that follow the wire format; undefined for a rejected row. `rejected`: (row, reason), ascending.
    """

    codes: Codes
    ids: list[str]
    payload: pa.BinaryArray
    rejected: Rejections


class WireFormat:
    """Parses the wire format of the values, or with `is_key` of the keys, of a topic."""

    def __init__(
        self,
        layout: Layout,
        id_in: SchemaIdLocation = SchemaIdLocation.EITHER,
        use_id: ApicurioIdType | None = None,
        *,
        is_key: bool = False,
        chooses_message: bool = False,
    ) -> None:
        """`use_id` is the kind of Apicurio's ids in values; None: content ids. `chooses_message`: a selector of the
        message (`sink_job.converters.protobuf_message_index`) follows the id, also in a header. It is the start of each
        payload."""
        self._layout = layout
        self._id_in = id_in
        self._part = "key" if is_key else "value"
        self._chooses_message = chooses_message
        self._message_name = ""
        if chooses_message and layout is Layout.APICURIO:
            self._message_name = "apicurio.protobuf.type" + (".key" if is_key else "")
        self._kind = _GLOBAL if use_id is ApicurioIdType.GLOBAL_ID else ""
        reads_headers = id_in is not SchemaIdLocation.VALUE
        self._headers = _header_parsers(layout, self._part) if reads_headers else {}
        self._encoding = f"apicurio.{self._part}.encoding" if reads_headers and layout is Layout.APICURIO else ""

    @classmethod
    def of(cls, settings: WireFormatSettings, *, is_key: bool = False, chooses_message: bool = False) -> WireFormat:
        """The wire format of a sink's values, or with `is_key` of its keys."""
        return cls(
            Layout(settings.type), settings.id_in, settings.use_id, is_key=is_key, chooses_message=chooses_message
        )

    @property
    def layout(self) -> Layout:
        """The serializer whose wire format the values have."""
        return self._layout

    @property
    def needs_headers(self) -> bool:
        """Whether `parse` needs the records' headers."""
        return bool(self._headers)

    def parse(self, values: pa.BinaryArray, headers: pa.ListArray | None = None) -> InWireFormat:
        """The ids and payloads of `values`, none of which may be null. `headers` are those of the same rows."""
        if self._id_in is SchemaIdLocation.VALUE or (headers is None and self._id_in is SchemaIdLocation.EITHER):
            return self._uncompressed(values, self._in_values(values))
        if self._id_in is SchemaIdLocation.EITHER and not self._has_ids(headers):
            return self._uncompressed(values, self._in_values(values))
        texts, errors, selectors = self._in_headers(headers, len(values))
        bare_values = np.fromiter((text is None for text in texts), np.bool_, len(texts))
        bare_values[list(errors)] = False
        if self._id_in is SchemaIdLocation.HEADER:
            errors |= dict.fromkeys(np.flatnonzero(bare_values).tolist(), f"the record has no header {self._names()}")
            bare_values[:] = False
        if bare_values.all():
            return self._uncompressed(values, self._in_values(values))
        in_wire_format = self._in_values(values.filter(arrow_columns.booleans(bare_values)))
        if selectors:
            values = _with_selectors(values, selectors, is_optional=self._layout is Layout.APICURIO)
        return self._uncompressed(values, self._merged(values, texts, errors, bare_values, in_wire_format))

    def _has_ids(self, headers: pa.ListArray) -> bool:
        """Whether a row has a header for an id or for the encoding. Most have no headers at all."""
        keys = headers.flatten().field("key")
        names = [*self._headers, *([self._encoding] if self._encoding else [])]
        return bool(len(keys)) and any(pc.any(pc.equal(keys, name)).as_py() for name in names)

    def _names(self) -> str:
        return " or ".join(self._headers)

    def _in_headers(
        self, headers: pa.ListArray | None, n: int
    ) -> tuple[list[str | None], dict[int, str], dict[int, bytes]]:
        """The id of each row that has one in its headers, and by row the reasons for rejected headers and the
        selectors of messages in headers."""
        texts: list[str | None] = [None] * n
        errors: dict[int, str] = {}
        selectors: dict[int, bytes] = {}
        if headers is None or not self._headers:
            return texts, errors, selectors
        for row, name, value in _matching(headers, list(self._headers)):
            texts[row] = None
            errors.pop(row, None)
            schema_id = value
            if self._chooses_message and self._layout is Layout.CONFLUENT and value is not None:
                schema_id, selectors[row] = value[: _GUID + 1], value[_GUID + 1 :]
            try:
                texts[row] = self._headers[name](schema_id)
            except ValueError as error:
                errors[row] = f"the header {name} {error}"
        for row in _not_binary(headers, self._encoding):
            texts[row] = None
            errors[row] = f"the header {self._encoding} is not BINARY: only Avro's binary encoding is supported"
        if self._message_name:
            names = {row: name for row, _, name in _matching(headers, [self._message_name])}
            selectors = {row: name_selector(name) for row, name in names.items() if name is not None}
        return texts, errors, selectors

    def _in_values(self, values: pa.BinaryArray) -> InWireFormat:
        in_wire_format = self._with_prefix(values, _PREFIXES[self._layout])
        zero = f"{self._kind}0"
        if self._layout is not Layout.APICURIO or zero not in in_wire_format.ids:
            return in_wire_format
        lengths = np.diff(arrow_columns.bounds(values))
        wide = (in_wire_format.codes == in_wire_format.ids.index(zero)) & (lengths >= _WIDE.size)
        if not wide.any():
            return in_wire_format
        wide_in_wire_format = self._with_prefix(values.filter(arrow_columns.booleans(wide)), _WIDE)
        if wide.all():
            return wide_in_wire_format
        texts = [in_wire_format.ids[code] if code >= 0 else None for code in in_wire_format.codes.tolist()]
        return self._merged(in_wire_format.payload, texts, dict(in_wire_format.rejected), wide, wide_in_wire_format)

    def _with_prefix(self, values: pa.BinaryArray, prefix: _Prefix) -> InWireFormat:
        data, bounds = arrow_columns.content(values), arrow_columns.bounds(values).astype(np.int64)
        starts, lengths = bounds[:-1], np.diff(bounds)
        rejected = self._errors(prefix, data, starts, lengths)
        valid = np.ones(len(values), np.bool_)
        valid[[row for row, _ in rejected]] = False
        at = starts[valid] + prefix.size - prefix.width
        codes = np.full(len(values), -1, np.int32)
        codes[valid], ids = self._distinct(data, at, prefix.width)
        if prefix.gap and len(at):
            codes[valid] += (data[at - 1] == _ZLIB).astype(np.int32) * len(ids)
            codes, ids = _compact(codes, [*ids, *(_COMPRESSED + text for text in ids)])
        return InWireFormat(codes, ids, _from(values, prefix.size), rejected)

    def _errors(self, prefix: _Prefix, data: Bytes, starts: Integers, lengths: Integers) -> Rejections:
        first = _bytes_at(data, starts, lengths > 0)
        valid = (first == prefix.magic) & (lengths >= prefix.size)
        if prefix.gap:
            compression = _bytes_at(data, starts + 1, lengths > 1)
            valid &= (compression == 0) | (compression == _ZLIB)
        rows = np.flatnonzero(~valid).tolist()
        return [
            (row, self._error(prefix, data[starts[row] : starts[row] + min(lengths[row], 18)].tobytes()))
            for row in rows
        ]

    def _error(self, prefix: _Prefix, start: bytes) -> str:
        """The reason for the rejection of a value that begins with `start`."""
        if not start:
            return f"the {self._part} is empty; {self._layout} wire format starts with the byte {prefix.magic}"
        if start[0] != prefix.magic:
            return (
                f"the {self._part} starts with the byte {start[0]}; {self._layout} wire format starts with the byte "
                f"{prefix.magic}"
            )
        if prefix.gap and len(start) > 1 and start[1] not in (0, _ZLIB):
            return f"the {self._part} has the compression byte {start[1]}; {self._layout} wire format has 0 or {_ZLIB}"
        return (
            f"the {self._part} ends within its {prefix.size}-byte {self._layout} wire format, after {len(start)} bytes"
        )

    def _distinct(self, data: Bytes, at: Integers, width: int) -> tuple[Codes, list[str]]:
        """The distinct ids of `width` bytes at the positions `at`, and the index of each in them."""
        raw = data[at[:, None] + np.arange(width)] if len(at) else np.zeros((0, width), np.uint8)
        if len(at) and (raw == raw[0]).all():  # the usual case
            return np.zeros(len(at), np.int32), [self._kind + _id_text(raw[0].tobytes())]
        keys = np.ascontiguousarray(raw).view(np.dtype((np.void, width))).ravel()
        distinct, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        return rank[inverse], [self._kind + _id_text(distinct[i].tobytes()) for i in order]

    def _merged(
        self,
        values: pa.BinaryArray,
        texts: list[str | None],
        errors: dict[int, str],
        bare_values: Mask,
        in_wire_format: InWireFormat,
    ) -> InWireFormat:
        """Merges rows that have their ids in `texts` and their payloads in `values`, and rejected rows, with the rows
        `bare_values`, which are `in_wire_format` on their own."""
        rows = np.flatnonzero(bare_values)
        for row, code in zip(rows.tolist(), in_wire_format.codes.tolist(), strict=True):
            texts[row] = in_wire_format.ids[code] if code >= 0 else None
        ids = list(dict.fromkeys(text for text in texts if text is not None))
        index: dict[str | None, int] = {text: code for code, text in enumerate(ids)}
        for row in errors:
            texts[row] = None
        rejected = [*errors.items(), *((int(rows[row]), reason) for row, reason in in_wire_format.rejected)]
        codes = np.fromiter((index.get(text, -1) for text in texts), np.int32, len(texts))
        source = np.arange(len(values))
        source[rows] = len(values) + np.arange(len(rows))
        payload = pa.concat_arrays([values, in_wire_format.payload]).take(arrow_columns.integers(source))
        return InWireFormat(codes, ids, payload, sorted(rejected))

    def _uncompressed(self, values: pa.BinaryArray, in_wire_format: InWireFormat) -> InWireFormat:
        """Decompresses the payloads that are compressed."""
        if not any(text.startswith(_COMPRESSED) for text in in_wire_format.ids):
            return in_wire_format
        payload: list[bytes] = in_wire_format.payload.to_pylist()
        texts = [in_wire_format.ids[code] if code >= 0 else None for code in in_wire_format.codes.tolist()]
        errors = dict(in_wire_format.rejected)
        for row, text in enumerate(texts):
            if text is None or not text.startswith(_COMPRESSED):
                continue
            try:
                payload[row], texts[row] = _decompressed(payload[row]), text.removeprefix(_COMPRESSED)
            except ValueError as error:
                errors[row], texts[row] = f"the {self._part} {error}", None
        ids = list(dict.fromkeys(text for text in texts if text is not None))
        codes = np.fromiter((ids.index(text) if text else -1 for text in texts), np.int32, len(texts))
        return InWireFormat(codes, ids, arrow_columns.binaries(payload), sorted(errors.items()))


_ZLIB: Final = 5
_COMPRESSED: Final = "zlib:"
"""Marks the id of a row with a compressed payload, within this module."""


def _compact(codes: Codes, ids: list[str]) -> tuple[Codes, list[str]]:
    """Without the ids that no row has, in the order of the first rows.

    >>> codes, ids = _compact(np.array([2, -1, 0]), ["7", "8", "9"])
    >>> codes.tolist(), ids
    ([0, -1, 1], ['9', '7'])
    """
    used = list(dict.fromkeys(code for code in codes.tolist() if code >= 0))
    rank = np.full(len(ids) + 1, -1, np.int32)
    rank[used] = np.arange(len(used), dtype=np.int32)
    return rank[codes], [ids[code] for code in used]


def _with_selectors(values: pa.BinaryArray, selectors: dict[int, bytes], *, is_optional: bool) -> pa.BinaryArray:
    """The values, each after the selector of its message if it has one; with `is_optional`, if it does not start with
    it already."""
    found = [(selectors.get(row, b""), value) for row, value in enumerate(values.to_pylist())]
    return arrow_columns.binaries(
        [value if is_optional and value.startswith(selector) else selector + value for selector, value in found]
    )


def _from(values: pa.BinaryArray, start: int) -> pa.BinaryArray:
    """Each value from the byte `start`. pyarrow 26 fails for values shorter than that unless an end is given."""
    return pc.binary_slice(values, start, 2**31 - 1)


def _bytes_at(data: Bytes, at: Integers, exists: Mask) -> npt.NDArray[np.int16]:
    """The bytes at the positions `at`, -1 where none `exists`."""
    found = np.full(len(at), -1, np.int16)
    found[exists] = data[at[exists]]
    return found


def _id_text(raw: bytes) -> str:
    """The text of an id: a UUID of 16 bytes, else a decimal number."""
    return str(UUID(bytes=raw)) if len(raw) == _GUID else str(int.from_bytes(raw, signed=True))


def _decompressed(payload: bytes) -> bytes:
    """Raises ValueError if `payload` is not one zlib stream, or is larger than MAX_UNCOMPRESSED."""
    stream = zlib.decompressobj()
    try:
        found = stream.decompress(payload, MAX_UNCOMPRESSED)
    except zlib.error as error:
        raise ValueError(f"cannot be decompressed: {error}") from None
    if stream.eof and not stream.unused_data:
        return found
    if len(found) >= MAX_UNCOMPRESSED:
        raise ValueError(f"is larger than {MAX_UNCOMPRESSED} bytes when decompressed")
    raise ValueError("cannot be decompressed: it does not end with its zlib stream")


def _header_parsers(layout: Layout, part: str) -> dict[str, Callable[[bytes | None], str]]:
    """The headers that can contain an id, and the function that reads it, which raises ValueError."""
    match layout:
        case Layout.CONFLUENT:
            return {f"__{part}_schema_id": _guid}
        case Layout.APICURIO:
            return {f"apicurio.{part}.contentId": _long, f"apicurio.{part}.globalId": lambda v: _GLOBAL + _long(v)}
    return {}


def _guid(value: bytes | None) -> str:
    if value is None or len(value) != _GUID + 1 or value[0] != 1:
        raise ValueError("does not have the byte 1 followed by a 16-byte GUID")
    return _id_text(value[1:])


def _long(value: bytes | None) -> str:
    if value is None or len(value) != 8:
        raise ValueError("does not have an 8-byte id")
    return _id_text(value)


def _not_binary(headers: pa.ListArray, name: str) -> Iterator[int]:
    """The rows whose header `name` has another value than Apicurio's serializers write for Avro's binary encoding."""
    if name:
        encodings = {row: value for row, _, value in _matching(headers, [name])}
        yield from (row for row, value in encodings.items() if value != b"BINARY")


def _matching(headers: pa.ListArray, names: list[str]) -> Iterator[tuple[int, str, bytes | None]]:
    """The (row, name, value) of the headers with one of `names`. The last header of a name comes last, as
    `Headers.lastHeader` of Kafka would find it; the first of `names` comes last within a row."""
    rows = arrow_columns.numbers(pc.list_parent_indices(headers))
    pairs = headers.flatten()
    keys = pairs.field("key")
    for name in reversed(names):
        found = arrow_columns.truths(pc.fill_null(pc.equal(keys, name), False))
        for at in np.flatnonzero(found).tolist():
            yield int(rows[at]), name, pairs.field("value")[at].as_py()
