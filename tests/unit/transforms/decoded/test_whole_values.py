"""Values with a schema as Connect's, for transforms."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sink_job.api.enums import OutputFormat
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.limits import VALUE_TOO_DEEP
from sink_job.connect.schema import Field, RegisteredSchema, Schema, SchemaType
from sink_job.converters.registered import SchemaSettings
from sink_job.records.fields import MISSING
from sink_job.transforms.decoded.whole_values import WHOLE, WholeValueDecoder, cannot_be_used, whole_value_settings

TEXT = Schema(SchemaType.STRING, optional=True)


def read(data: bytes) -> object:
    match data:
        case b"invalid":
            raise ValueError("it is invalid")
        case b"unnamed":
            raise LookupError
        case b"deep":
            raise RecursionError
        case b"null":
            return None
    return data.decode()


def test_each_value_is_read_on_its_own() -> None:
    payload = pa.array([b"a", b"invalid", b"null", b"deep", b"unnamed"], pa.binary())
    found = WholeValueDecoder(TEXT, read).decode(payload)
    assert found.fields == {WHOLE: ["a", MISSING, None, MISSING, MISSING]}
    assert found.rejected == [(1, "it is invalid"), (3, VALUE_TOO_DEEP), (4, "the value cannot be computed")]
    assert found.nulls is not None
    assert found.nulls.tolist() == [False, False, True, False, False]
    assert WholeValueDecoder(TEXT, read).decode(payload[:1]).nulls is None


def test_a_recursive_schema_cannot_be_transformed() -> None:
    inner = Field("next", Schema(SchemaType.REFERENCE, "N", optional=True))
    with pytest.raises(InvalidSchema, match=r"^it is recursive, and spec\.transforms cannot change such a schema$"):
        WholeValueDecoder(Schema(SchemaType.STRUCT, "N", fields=(inner,)), read)


def test_no_text_is_put_together() -> None:
    assert whole_value_settings(SchemaSettings()).output is OutputFormat.BYTES


def test_an_error_names_the_schema() -> None:
    error = cannot_be_used(RegisteredSchema("5", "AVRO", "{}"), InvalidSchema("it is odd"))
    assert str(error) == "schema 5 cannot be used: it is odd"
