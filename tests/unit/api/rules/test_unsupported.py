"""Unsupported settings are rejected by name, never ignored; supported settings are accepted in all combinations."""

from __future__ import annotations

import itertools

import pytest

from sink_job.api.enums import (
    ConverterType,
    DesiredState,
    OnNullValue,
    OutputFormat,
    PartitionerType,
    SchemaCompatibility,
    SchemaNamePosition,
    TimestampExtractor,
    Tolerance,
)
from tests.unit.api.manifests import accepted, spec_errors

UNSUPPORTED = [
    (
        {"spec.offsets.reset": {"nonce": "n", "to": "Earliest", "onExisting": "Overwrite"}},
        "spec.offsets.reset.onExisting: Overwrite is not supported yet; supported: Fail, NewPrefix",
    ),
]


@pytest.mark.parametrize(
    ("changes", "sentence"), UNSUPPORTED, ids=[sentence.split(":")[0] for _, sentence in UNSUPPORTED]
)
def test_an_unsupported_setting_is_rejected_by_name(changes: dict[str, object], sentence: str) -> None:
    assert spec_errors(changes) == [sentence]


@pytest.mark.parametrize(
    ("changes", "sentence"), UNSUPPORTED, ids=[sentence.split(":")[0] for _, sentence in UNSUPPORTED]
)
def test_an_unsupported_setting_can_be_parsed_by_the_operator(changes: dict[str, object], sentence: str) -> None:
    assert "not supported yet" in sentence
    accepted(changes, for_job=False)


def test_every_value_is_either_supported_or_rejected() -> None:
    choices = {
        "spec.format.converter": ConverterType,
        "spec.format.output": OutputFormat,
        "spec.partitioner.schemaName": SchemaNamePosition,
        "spec.schemaCompatibility": SchemaCompatibility,
        "spec.errors.onNullValue": OnNullValue,
        "spec.errors.tolerance": Tolerance,
    }
    rejected = {
        str(value)
        for field, kind in choices.items()
        for value in kind
        if (field, str(value)) not in _supported() and spec_errors({field: str(value)})
    }
    built = {value for _, value in _supported()}
    assert rejected | built == {str(value) for kind in choices.values() for value in kind}


def _supported() -> set[tuple[str, str]]:
    built = {
        "spec.format.converter": (
            "Json",
            "ConnectJson",
            "Text",
            "Bytes",
            "Cbor",
            "MessagePack",
            "Avro",
            "Protobuf",
            "JsonSchema",
        ),
        "spec.format.output": ("Json", "Bytes", "Avro", "Parquet"),
        "spec.partitioner.schemaName": ("None", "Prefix", "Suffix"),
        "spec.schemaCompatibility": ("None", "Separate", "Backward", "Forward", "Full"),
        "spec.errors.onNullValue": ("Fail", "Ignore"),  # Write needs an envelope
        "spec.errors.tolerance": ("None", "All"),
    }
    return {(field, value) for field, values in built.items() for value in values}


@pytest.mark.parametrize(("kind", "extractor"), list(itertools.product(PartitionerType, TimestampExtractor)), ids=str)
def test_every_partitioner_is_supported_with_every_extractor(
    kind: PartitionerType, extractor: TimestampExtractor
) -> None:
    partitioner: dict[str, object] = {"type": str(kind), "timezone": "UTC", "timestampExtractor": str(extractor)}
    if kind.uses_fields:
        partitioner["fields"] = ["carrier"]
    if kind.uses_time and kind.duration is None:
        partitioner |= {"duration": "1h", "pathFormat": "HH"}
    accepted({"spec.partitioner": partitioner})


def test_the_job_accepts_all_settings_of_the_operator() -> None:
    spec = accepted(
        {
            "spec.executor": {"mode": "Local", "instances": 3, "memory": {"mode": "Disabled", "max": "4Gi"}},
            "spec.driver": {"cores": 2, "memory": "2Gi"},
            "spec.image": "registry.example.com/job:1",
            "spec.imagePullSecrets": [{"name": "login"}],
            "spec.deletionPolicy": "Publish",
            "spec.restartNonce": "1",
        }
    ).spec
    assert spec.executor.memory.max == 4 * 1024**3


def test_a_running_sink_has_no_reason_not_to_run() -> None:
    assert accepted().reason_not_to_run() is None


@pytest.mark.parametrize("state", [DesiredState.PAUSED, DesiredState.STOPPED])
def test_a_paused_or_stopped_sink_has_a_reason_not_to_run(state: DesiredState) -> None:
    reason = accepted({"spec.state": str(state)}).reason_not_to_run()
    assert reason == f"spec.state is {state}: set it to Running to run this sink"


def test_a_sink_with_an_offset_reset_has_a_reason_not_to_run() -> None:
    reset = {"nonce": "1", "to": "Earliest"}
    assert "runs only while spec.state is Stopped" in str(accepted({"spec.offsets.reset": reset}).reason_not_to_run())
