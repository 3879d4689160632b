"""The wire format of values that Apicurio's Java serializers have written."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

import fastavro
import pyarrow as pa
import pytest

from sink_job.api.enums import ApicurioIdType
from sink_job.converters.wire_format import InWireFormat, Layout, WireFormat
from tests.support.apicurio_values import CONTENT_IDS, GLOBAL_IDS, WrittenValue, schema_texts, written_values

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
CONTENT = {str(schema_id): text for schema_id, text in zip(CONTENT_IDS, schema_texts(), strict=True)}
GLOBAL = {f"global-{schema_id}": text for schema_id, text in zip(GLOBAL_IDS, schema_texts(), strict=True)}


def in_wire_format(values: Sequence[WrittenValue], use_id: ApicurioIdType = ApicurioIdType.CONTENT_ID) -> InWireFormat:
    headers = pa.array([[{"key": k, "value": v} for k, v in each.headers] for each in values], HEADERS)
    return WireFormat(Layout.APICURIO, use_id=use_id).parse(
        pa.array([each.value for each in values], pa.binary()), headers
    )


@pytest.mark.parametrize(
    ("run", "use_id", "texts"),
    [
        ("3.1.7 content id", ApicurioIdType.CONTENT_ID, CONTENT),
        ("3.1.7 content id of 8 bytes", ApicurioIdType.CONTENT_ID, CONTENT),
        ("3.1.7 content id in a header", ApicurioIdType.CONTENT_ID, CONTENT),
        ("3.1.7 content id in a header", ApicurioIdType.GLOBAL_ID, CONTENT),
        ("3.1.7 global id", ApicurioIdType.GLOBAL_ID, GLOBAL),
        ("3.1.7 global id of 8 bytes", ApicurioIdType.GLOBAL_ID, GLOBAL),
        ("3.1.7 global id in a header", ApicurioIdType.CONTENT_ID, GLOBAL),
        ("2.6.13 global id in a header", ApicurioIdType.CONTENT_ID, GLOBAL),
        ("2.6.13 global id of 8 bytes", ApicurioIdType.GLOBAL_ID, GLOBAL),
        ("2.6.13 global id of 4 bytes", ApicurioIdType.GLOBAL_ID, GLOBAL),
    ],
)
def test_the_payload_is_of_the_schema_with_the_id(run: str, use_id: ApicurioIdType, texts: dict[str, str]) -> None:
    values = written_values(run)
    found = in_wire_format(values, use_id)
    assert found.rejected == []
    for each, code, payload in zip(values, found.codes.tolist(), found.payload.to_pylist(), strict=True):
        schema = json.loads(texts[found.ids[code]])
        assert fastavro.schemaless_reader(io.BytesIO(payload), schema, None) == each.flight


def test_avro_in_json_is_rejected() -> None:
    found = in_wire_format(written_values("3.1.7 JSON encoding"))
    assert [row for row, _ in found.rejected] == [0, 1, 2, 3]
