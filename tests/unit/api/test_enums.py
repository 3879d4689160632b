"""What the values of a manifest's enumerations mean."""

from __future__ import annotations

from sink_job.api.enums import ConverterType, OutputFormat


def test_only_languages_of_a_registry_need_one() -> None:
    assert {each for each in ConverterType if each.needs_registry} == {"Avro", "Protobuf", "JsonSchema"}


def test_connect_json_has_schemas_without_a_registry() -> None:
    assert {each for each in ConverterType if each.has_schemas and not each.needs_registry} == {"ConnectJson"}


def test_the_outputs_avro_and_parquet_have_typed_values() -> None:
    assert {each for each in OutputFormat if each.has_datums} == {"Avro", "Parquet"}
