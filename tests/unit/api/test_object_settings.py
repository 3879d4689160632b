"""ObjectSettings in the ledger: complete, without loss, and without settings that do not affect bytes and keys."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.enums import (
    CompressionCodec,
    ConverterType,
    OutputFormat,
    PartitionerType,
    RotationScope,
    TimestampExtractor,
)
from sink_job.api.rules.compressions import LEVELS
from sink_job.api.sections.format_section import AvroSpec, BytesSpec, CompressionSpec, FormatSpec, ParquetSpec
from sink_job.api.sections.job_sections import KeySettings, PartitionerSpec, RotationSpec
from sink_job.api.spec import ObjectSettings
from sink_job.api.units.quantities import DAY, GI, MI
from tests.unit.api.manifests import HOURLY, accepted

_TEXT = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=12)
_DURATIONS = st.none() | st.integers(1, 400 * DAY)


@st.composite
def formats(draw: st.DrawFn) -> FormatSpec:
    output, codec = draw(st.sampled_from(OutputFormat)), draw(st.sampled_from(CompressionCodec))
    levels = LEVELS.get(codec)
    level = {} if levels is None else {"level": draw(st.integers(levels.lowest, levels.highest))}
    sections: dict[OutputFormat, dict[str, Any]] = {
        OutputFormat.PARQUET: {"parquet": ParquetSpec(dictionary=draw(st.booleans()))},
        OutputFormat.AVRO: {"avro": AvroSpec(connect_names=draw(st.booleans()))},
        OutputFormat.BYTES: {"bytes": BytesSpec(separator=draw(st.text(max_size=8)))},
    }
    return FormatSpec(
        converter=draw(st.sampled_from(ConverterType)),
        output=output,
        compression=CompressionSpec(codec=codec, **level),
        **sections.get(output, {}),
    )


ALL_SETTINGS = st.builds(
    ObjectSettings,
    format=formats(),
    partitioner=st.builds(
        PartitionerSpec,
        type=st.sampled_from(PartitionerType),
        fields=st.none() | st.lists(_TEXT.filter(lambda text: "." not in text), min_size=1, max_size=3),
        duration=_DURATIONS,
        path_format=st.sampled_from([None, "'y'=YYYY", "HH 'o''clock'"]),
        timezone=st.sampled_from([None, "UTC", "-03:30", "Europe/Berlin"]),
        timestamp_extractor=st.sampled_from(TimestampExtractor),
    ),
    rotation=st.builds(
        RotationSpec,
        flush_size=st.none() | st.integers(1, 2**53 - 1),
        interval=_DURATIONS,
        schedule_interval=st.none() | st.integers(1, DAY),
        on_path_change=st.booleans(),
        max_bytes=st.none() | st.integers(1, 1 << 50),
        max_open_time=_DURATIONS,
        scope=st.sampled_from(RotationScope),
    ),
    s3=st.builds(
        KeySettings,
        topics_dir=st.sampled_from(["", "topics", "lake/raw"]),
        offset_pad_width=st.integers(0, 64),
        part_size=st.integers(5 * MI, 2 * GI),
    ),
)


@given(ALL_SETTINGS)
def test_object_settings_are_read_from_the_ledger_without_loss(object_settings: ObjectSettings) -> None:
    assert ObjectSettings.model_validate_json(object_settings.model_dump_json()) == object_settings


@given(ALL_SETTINGS)
def test_equal_object_settings_have_the_same_json(object_settings: ObjectSettings) -> None:
    text = object_settings.model_dump_json()
    assert ObjectSettings.model_validate_json(text).model_dump_json() == text


@given(ALL_SETTINGS)
def test_object_settings_have_the_json_form_of_a_manifest(object_settings: ObjectSettings) -> None:
    document = object_settings.model_dump(mode="json", exclude_none=True)
    assert (
        ObjectSettings.model_validate(document, context={"manifest": True}, by_alias=True, by_name=False)
        == object_settings
    )


def test_object_settings_contain_no_connection_settings() -> None:
    object_settings = accepted(
        {"spec.s3": {"bucket": "archive", "partSize": "6Mi", "topicsDir": "lake"}}
    ).object_settings()
    assert type(object_settings.s3) is KeySettings
    assert object_settings.s3 == KeySettings(part_size=6 * MI, topics_dir="lake")


def test_object_settings_have_the_values_of_the_manifest() -> None:
    sink = accepted(HOURLY, {"spec.format": {"compression": {"codec": "Gzip"}}})
    object_settings, spec = sink.object_settings(), sink.spec
    assert (object_settings.format, object_settings.partitioner, object_settings.rotation) == (
        spec.format,
        spec.partitioner,
        spec.rotation,
    )


def test_other_settings_do_not_change_the_object_settings() -> None:
    changed = accepted({"spec.rounds": {"maxBytes": "1Gi"}, "spec.s3": {"bucket": "other", "region": "eu-central-1"}})
    assert changed.object_settings() == accepted().object_settings()


def test_the_default_sink_id_is_namespace_and_name() -> None:
    sink = accepted({"metadata.namespace": "air"})
    assert (sink.sink_id, sink.group_id) == ("air.flights", "s3sink-air.flights")


def test_a_sink_uses_the_configured_sink_id_and_group() -> None:
    sink = accepted({"spec.sinkId": "archive", "spec.kafka.groupId": "team-a"})
    assert (sink.sink_id, sink.group_id) == ("archive", "team-a")
