"""Wire format: schema ids in values and in headers, payloads, and rejected rows."""

from __future__ import annotations

import zlib
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.enums import ApicurioIdType, SchemaIdLocation
from sink_job.converters import wire_format
from sink_job.converters.wire_format import InWireFormat, Layout, WireFormat

GUID = UUID("01234567-89ab-cdef-0123-456789abcdef")
Headers = list[tuple[str, bytes | None]]
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def confluent(number: int, payload: bytes = b"x") -> bytes:
    return b"\0" + number.to_bytes(4) + payload


def glue(payload: bytes, compression: int = 0, guid: UUID = GUID) -> bytes:
    return bytes([3, compression]) + guid.bytes + payload


def parse(found: WireFormat, values: list[bytes], headers: list[Headers | None] | None = None) -> InWireFormat:
    rows = None
    if headers is not None:
        rows = pa.array([None if h is None else [{"key": k, "value": v} for k, v in h] for h in headers], HEADERS)
    return found.parse(pa.array(values, pa.binary()), rows)


def ids(found: InWireFormat) -> list[str | None]:
    return [found.ids[code] if code >= 0 else None for code in found.codes.tolist()]


def payloads(found: InWireFormat) -> list[bytes | None]:
    rejected = {row for row, _ in found.rejected}
    return [None if row in rejected else value for row, value in enumerate(found.payload.to_pylist())]


def test_confluents_ids_are_numbers_in_the_order_of_their_first_rows() -> None:
    found = parse(WireFormat(Layout.CONFLUENT), [confluent(70_000, b"a"), confluent(5, b""), confluent(70_000, b"bc")])
    assert found.ids == ["70000", "5"]
    assert ids(found) == ["70000", "5", "70000"]
    assert found.payload.to_pylist() == [b"a", b"", b"bc"]
    assert found.rejected == []


def test_apicurios_ids_have_4_or_8_bytes() -> None:
    narrow, wide = b"\0" + (7).to_bytes(4), b"\0" + (2**31 - 1).to_bytes(8)
    found = parse(WireFormat(Layout.APICURIO), [wide + b"a", narrow + b"bcd", b"?", wide])
    assert ids(found) == ["2147483647", "7", None, "2147483647"]
    assert payloads(found) == [b"a", b"bcd", None, b""]


def test_apicurios_ids_in_values_are_content_ids_or_global_ids() -> None:
    values = [b"\0" + (5).to_bytes(4) + b"x", b"\0" + (6).to_bytes(8) + b"y"]
    settings = {kind: WireFormat(Layout.APICURIO, use_id=kind) for kind in ApicurioIdType}
    assert ids(parse(settings[ApicurioIdType.CONTENT_ID], values)) == ["5", "6"]
    assert ids(parse(settings[ApicurioIdType.GLOBAL_ID], values)) == ["global-5", "global-6"]


@pytest.mark.parametrize("encoding", [b"JSON", b"", None])
def test_apicurios_avro_in_json_is_rejected(encoding: bytes | None) -> None:
    headers: list[Headers | None] = [
        [("apicurio.value.contentId", (5).to_bytes(8)), ("apicurio.value.encoding", each)]
        for each in (b"BINARY", encoding)
    ]
    found = parse(WireFormat(Layout.APICURIO), [b"a", b"b"], headers)
    assert ids(found) == ["5", None]
    reason = "the header apicurio.value.encoding is not BINARY: only Avro's binary encoding is supported"
    assert found.rejected == [(1, reason)]


def test_glues_ids_are_uuids_and_compressed_payloads_are_decompressed() -> None:
    values = [glue(b"plain"), glue(zlib.compress(b"packed"), 5), glue(b"other", guid=UUID(int=1))]
    found = parse(WireFormat(Layout.GLUE), values)
    assert ids(found) == [str(GUID), str(GUID), str(UUID(int=1))]
    assert payloads(found) == [b"plain", b"packed", b"other"]


@pytest.mark.parametrize(
    ("layout", "value", "reason"),
    [
        (Layout.CONFLUENT, b"", "the value is empty; Confluent wire format starts with the byte 0"),
        (Layout.CONFLUENT, b'{"a"', "the value starts with the byte 123; Confluent wire format starts with the byte 0"),
        (Layout.CONFLUENT, b"\0\0\0\0", "the value ends within its 5-byte Confluent wire format, after 4 bytes"),
        (Layout.APICURIO, b"\0" * 4, "the value ends within its 5-byte Apicurio wire format, after 4 bytes"),
        (Layout.GLUE, b"\0" * 20, "the value starts with the byte 0; Glue wire format starts with the byte 3"),
        (Layout.GLUE, b"\3\1" + b"x" * 20, "the value has the compression byte 1; Glue wire format has 0 or 5"),
        (Layout.GLUE, b"\3\0" + b"x" * 15, "the value ends within its 18-byte Glue wire format, after 17 bytes"),
        (Layout.GLUE, glue(b"no zlib", 5), "the value cannot be decompressed: Error -3 while decompressing data: "),
        (Layout.GLUE, glue(zlib.compress(b"x" * 99)[:-3], 5), "it does not end with its zlib stream"),
        (Layout.GLUE, glue(zlib.compress(b"x") + b"y", 5), "it does not end with its zlib stream"),
    ],
)
def test_a_value_without_a_valid_wire_format_is_rejected_alone(layout: Layout, value: bytes, reason: str) -> None:
    valid = {Layout.GLUE: glue(b"z"), Layout.CONFLUENT: confluent(1, b"z"), Layout.APICURIO: b"\0" * 9 + b"z"}
    found = parse(WireFormat(layout), [valid[layout], value, valid[layout]])
    (rejection,) = found.rejected
    assert rejection[0] == 1
    assert reason in rejection[1]
    assert ids(found)[1] is None
    assert payloads(found) == [b"z", None, b"z"]


def test_a_payload_that_expands_beyond_the_limit_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_format, "MAX_UNCOMPRESSED", 1000)
    found = parse(WireFormat(Layout.GLUE), [glue(zlib.compress(b"x" * 1000), 5), glue(zlib.compress(b"x" * 1001), 5)])
    assert found.rejected == [(1, "the value is larger than 1000 bytes when decompressed")]


def test_an_id_in_a_header_has_precedence_over_the_value() -> None:
    header: Headers = [("other", b"x"), ("__value_schema_id", b"\1" + GUID.bytes)]
    found = parse(WireFormat(Layout.CONFLUENT), [b"whole", confluent(7, b"a"), confluent(8)], [header, [], None])
    assert ids(found) == [str(GUID), "7", "8"]
    assert payloads(found) == [b"whole", b"a", b"x"]
    assert found.ids == [str(GUID), "7", "8"]


@pytest.mark.parametrize("headers", [[None, []], [[("tenant", b"1")], None], [[("tenant", None)], [("", b"")]]])
@pytest.mark.parametrize("layout", Layout)
def test_headers_without_an_id_change_nothing(layout: Layout, headers: list[Headers | None]) -> None:
    found = parse(WireFormat(layout), [confluent(5), b"?"], headers)
    expected = parse(WireFormat(layout, SchemaIdLocation.VALUE), [confluent(5), b"?"])
    assert (ids(found), payloads(found), found.rejected) == (ids(expected), payloads(expected), expected.rejected)


def test_with_ids_in_headers_only_a_record_without_the_header_is_rejected() -> None:
    header: Headers = [("__value_schema_id", b"\1" + GUID.bytes)]
    found = parse(WireFormat(Layout.CONFLUENT, SchemaIdLocation.HEADER), [b"a", confluent(7)], [header, []])
    assert found.rejected == [(1, "the record has no header __value_schema_id")]
    assert ids(found) == [str(GUID), None]


def test_with_ids_in_values_only_headers_are_not_read() -> None:
    found = WireFormat(Layout.CONFLUENT, SchemaIdLocation.VALUE)
    assert not found.needs_headers
    assert ids(parse(found, [confluent(7)], [[("__value_schema_id", b"\1" + GUID.bytes)]])) == ["7"]


@pytest.mark.parametrize("value", [None, b"", b"\0" + GUID.bytes, b"\1" + GUID.bytes[:-1]])
def test_a_header_that_is_not_a_guid_is_a_data_error(value: bytes | None) -> None:
    found = parse(WireFormat(Layout.CONFLUENT), [confluent(7), confluent(7)], [[("__value_schema_id", value)], []])
    reason = "the header __value_schema_id does not have the byte 1 followed by a 16-byte GUID"
    assert found.rejected == [(0, reason)]
    assert ids(found) == [None, "7"]


def test_the_headers_of_keys_have_names_of_their_own() -> None:
    found = parse(WireFormat(Layout.CONFLUENT, is_key=True), [b"k"], [[("__key_schema_id", b"\1" + GUID.bytes)]])
    assert ids(found) == [str(GUID)]


def test_apicurios_headers_have_content_ids_or_global_ids() -> None:
    headers: list[Headers | None] = [
        [("apicurio.value.contentId", (5).to_bytes(8))],
        [("apicurio.value.globalId", (5).to_bytes(8))],
        [("apicurio.value.globalId", (6).to_bytes(8)), ("apicurio.value.contentId", (5).to_bytes(8))],
    ]
    found = parse(WireFormat(Layout.APICURIO), [b"a", b"b", b"c"], headers)
    assert ids(found) == ["5", "global-5", "5"]


def test_the_last_of_several_headers_counts() -> None:
    twice: Headers = [("__value_schema_id", b"\1" + UUID(int=n).bytes) for n in (1, 2)]
    assert ids(parse(WireFormat(Layout.CONFLUENT), [b"a"], [twice])) == [str(UUID(int=2))]


def test_an_empty_batch_has_no_ids() -> None:
    found = parse(WireFormat(Layout.CONFLUENT), [])
    assert (found.ids, len(found.codes), len(found.payload)) == ([], 0, 0)


def test_a_slice_of_a_batch_has_the_ids_of_its_own_rows() -> None:
    values = pa.array([confluent(1), confluent(2, b"b"), confluent(3, b"c")], pa.binary())
    found = WireFormat(Layout.CONFLUENT).parse(values.slice(1, 2))
    assert (ids(found), payloads(found)) == (["2", "3"], [b"b", b"c"])


VALUES = st.one_of(
    st.binary(max_size=24),
    st.builds(confluent, st.integers(0, 3), st.binary(max_size=6)),
    st.builds(lambda number, payload: b"\0" + number.to_bytes(8) + payload, st.integers(0, 3), st.binary(max_size=3)),
    st.builds(glue, st.binary(max_size=3), st.sampled_from([0, 0, 5, 7]), st.sampled_from([GUID, UUID(int=1)])),
    st.builds(lambda payload: glue(zlib.compress(payload), 5), st.binary(max_size=9)),
)
HEADER = st.tuples(
    st.sampled_from(["__value_schema_id", "apicurio.value.contentId", "h"]),
    st.one_of(st.none(), st.binary(max_size=17), st.just(b"\1" + GUID.bytes), st.just(b"\0" * 8)),
)


def reference(layout: Layout, id_in: SchemaIdLocation, value: bytes, headers: Headers) -> tuple[str, bytes] | None:
    """The id and the payload of one record; None if it is rejected."""
    name, size = ("__value_schema_id", 17) if layout is Layout.CONFLUENT else ("apicurio.value.contentId", 8)
    given_ids = [given for key, given in headers if key == name]
    if given_ids and layout is not Layout.GLUE and id_in is not SchemaIdLocation.VALUE:
        last = given_ids[-1]
        if last is None or len(last) != size or (size == 17 and last[0] != 1):
            return None
        return (str(UUID(bytes=last[1:])) if size == 17 else str(int.from_bytes(last, signed=True))), value
    if id_in is SchemaIdLocation.HEADER:
        return None
    if layout is Layout.GLUE:
        if len(value) < 18 or value[0] != 3 or value[1] not in (0, 5):
            return None
        payload = value[18:]
        try:
            return str(UUID(bytes=value[2:18])), zlib.decompress(payload) if value[1] else payload
        except zlib.error:
            return None
    width = 8 if layout is Layout.APICURIO and len(value) > 8 and not any(value[1:5]) else 4
    if len(value) <= width or value[0] != 0:
        return None
    return str(int.from_bytes(value[1 : 1 + width], signed=True)), value[1 + width :]


@given(
    st.sampled_from(Layout),
    st.sampled_from(SchemaIdLocation),
    st.lists(st.tuples(VALUES, st.lists(HEADER, max_size=3)), max_size=12),
)
def test_a_batch_is_parsed_as_its_records_are(
    layout: Layout, id_in: SchemaIdLocation, records: list[tuple[bytes, Headers]]
) -> None:
    if layout is Layout.GLUE and id_in is SchemaIdLocation.HEADER:
        id_in = SchemaIdLocation.VALUE
    found = parse(WireFormat(layout, id_in), [value for value, _ in records], [headers for _, headers in records])
    expected = [reference(layout, id_in, value, headers) for value, headers in records]
    assert ids(found) == [None if one is None else one[0] for one in expected]
    assert payloads(found) == [None if one is None else one[1] for one in expected]
    assert [row for row, _ in found.rejected] == [row for row, one in enumerate(expected) if one is None]
    assert found.ids == list(dict.fromkeys(one[0] for one in expected if one))
