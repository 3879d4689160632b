"""Outputs, compression and schemas."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.migrate.findings import Severity
from sink_job.migrate.format_settings import nearest_gzip_level
from tests.unit.migrate.test_conversion import FORMAT, findings_of, spec_of

AVRO = {
    "value.converter": "io.confluent.connect.avro.AvroConverter",
    "value.converter.schema.registry.url": "https://registry.example.com",
}
AS_AVRO = {**AVRO, "format.class": f"{FORMAT}.avro.AvroFormat"}
AS_PARQUET = {**AVRO, "format.class": f"{FORMAT}.parquet.ParquetFormat"}
AS_BYTES = {
    "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "format.class": f"{FORMAT}.bytearray.ByteArrayFormat",
}


def section(settings: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = spec_of(settings)["format"]
    return found


def test_values_that_differ_by_default_are_written_out_for_parquet_and_avro() -> None:
    parquet, avro = section(AS_PARQUET), section(AS_AVRO)
    assert (parquet["compression"], parquet["parquet"]) == ({"codec": "Snappy"}, {"timeUnit": "AsSchema"})
    assert (avro["avro"], avro["logicalTypes"]) == ({"connectNames": True}, "AsConnector")
    assert "compression" not in avro


def test_the_other_layout_of_parquet_is_a_remark() -> None:
    assert any("Lists" in each for each in findings_of(AS_PARQUET, Severity.TO_DO))


def test_enums_as_strings_are_reported_for_avro_where_they_differ() -> None:
    key = "enhanced.avro.schema.support"  # the default of releases 12.x is true
    assert findings_of({**AS_AVRO, key: "true"}) == []
    assert len(findings_of({**AS_AVRO, key: "false"})) == 1
    assert findings_of({**AS_PARQUET, key: "false"}) == []


@pytest.mark.parametrize("codec", ["lz4", "LZO"])
def test_hadoop_s_codecs_cannot_be_converted(codec: str) -> None:
    assert len(findings_of({**AS_PARQUET, "parquet.codec": codec}, Severity.IMPOSSIBLE)) == 1


def test_codecs_of_each_output() -> None:
    assert section({**AS_PARQUET, "parquet.codec": "ZSTD"})["compression"] == {"codec": "Zstd"}
    assert section({**AS_AVRO, "avro.codec": "bzip2"})["compression"] == {"codec": "Bzip2"}
    assert section({"s3.compression.type": "gzip"})["compression"] == {"codec": "Gzip"}


def test_the_codec_of_another_output_is_left_out() -> None:
    found = findings_of({**AS_AVRO, "s3.compression.type": "gzip", "parquet.codec": "gzip"}, Severity.LEFT_OUT)
    assert {"s3.compression.type", "parquet.codec"} <= {each.split("=")[0] for each in found}


def test_gzip_levels_are_the_nearest_of_the_other_library() -> None:
    assert [nearest_gzip_level(level) for level in range(10)] == [0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    found = section({"s3.compression.type": "gzip", "s3.compression.level": "9"})
    assert found["compression"] == {"codec": "Gzip", "level": 3}
    assert "level" not in section({"s3.compression.type": "gzip", "s3.compression.level": "-1"})["compression"]
    assert len(findings_of({"s3.compression.type": "gzip", "s3.compression.level": "10"})) == 1


def test_avro_and_parquet_of_json_without_schemas_infer_a_schema_and_are_reported() -> None:
    settings = {"format.class": f"{FORMAT}.parquet.ParquetFormat", "schema.compatibility": "FULL"}
    found = spec_of(settings)
    assert (found["format"]["inference"], found.get("schemaCompatibility")) == ("Once", None)
    assert len(findings_of(settings)) == 1


def test_avro_of_text_cannot_be_converted() -> None:
    settings = {**AS_AVRO, "value.converter": "org.apache.kafka.connect.storage.StringConverter"}
    assert len(findings_of(settings, Severity.IMPOSSIBLE)) == 1


@pytest.mark.parametrize("separator", ["", " ", "\n", "\\n", "\t;", "  "])
def test_the_separator_keeps_its_blanks(separator: str) -> None:
    assert section({**AS_BYTES, "format.bytearray.separator": separator})["bytes"] == {"separator": separator}


def test_a_separator_longer_than_a_manifest_has_cannot_be_converted() -> None:
    assert len(findings_of({**AS_BYTES, "format.bytearray.separator": "x" * 65}, Severity.IMPOSSIBLE)) == 1


def test_bytes_of_another_converter_are_reported() -> None:
    assert len(findings_of({**AS_BYTES, "value.converter": "org.apache.kafka.connect.storage.StringConverter"})) == 1


def test_an_extension_without_a_dot_is_reported() -> None:
    assert len(findings_of({**AS_BYTES, "format.bytearray.extension": "bin"})) == 1


def test_a_format_of_ones_own_cannot_be_converted() -> None:
    assert len(findings_of({"format.class": "org.radarbase.connect.s3.RadarBaseAvroFormat"}, Severity.IMPOSSIBLE)) == 1


def test_decimals_are_written_for_converters_that_have_them() -> None:
    settings = {"json.decimal.format": "numeric", "value.converter.schemas.enable": "true"}
    assert section(settings)["decimals"] == "Numeric"
    assert findings_of({"json.decimal.format": "numeric"}, Severity.DIFFERENT) == []


def test_compatibility_needs_records_with_schemas() -> None:
    assert spec_of({**AVRO, "schema.compatibility": "forward"})["schemaCompatibility"] == "Forward"
    assert "schemaCompatibility" not in spec_of({"schema.compatibility": "FULL"})


def test_settings_of_avro_schemas_have_no_effect_on_json() -> None:
    assert findings_of({"allow.optional.map.keys": "true", "scrub.invalid.names": "true"}) == []
    assert len(findings_of({**AS_AVRO, "allow.optional.map.keys": "true", "scrub.invalid.names": "true"})) == 1
