"""The fields for the operator: the values that each accepts, and its message for another one."""

from __future__ import annotations

import pytest

from sink_job.api.sections.operator_sections import DriverSpec, ExecutorSpec, OffsetResetSpec
from sink_job.api.units.quantities import MI
from tests.unit.api.manifests import accepted, case, spec_errors

INVALID = [
    case(
        "the previous value Off of the memory mode is answered with the new one",
        {"spec.executor.memory.mode": "Off"},
        "spec.executor.memory.mode: Off is not one of Disabled, Recommend, Auto: Off is now Disabled",
    ),
    case(
        "an Off that YAML 1.1 has read as a boolean is answered with the new value",
        {"spec.executor.memory.mode": False},
        "spec.executor.memory.mode: false is not one of Disabled, Recommend, Auto: Off is now Disabled",
    ),
    case(
        "zero executors are rejected",
        {"spec.executor.instances": 0},
        "spec.executor.instances: 0 is below the minimum of 1",
    ),
]


@pytest.mark.parametrize(("changes", "expected"), INVALID)
def test_an_invalid_value_is_rejected(changes: dict[str, object], expected: list[str]) -> None:
    assert spec_errors(changes) == expected


VALID = [
    case("a pod template of any shape", {"spec.executor.podTemplate": {"spec": {"tolerations": [{"key": "x"}]}}}),
]


@pytest.mark.parametrize(("changes", "expected"), VALID)
def test_a_valid_value_is_accepted(changes: dict[str, object], expected: list[str]) -> None:
    assert expected == []
    accepted(changes)


@pytest.mark.parametrize(
    ("field", "lowest", "highest"),
    [
        ("executor.instances", 1, 10_000),
        ("executor.cores", 1, 256),
        ("executor.memory.min", 512 * MI, None),
        ("driver.cores", 1, 256),
        ("driver.memory", 512 * MI, None),
    ],
)
def test_a_number_is_accepted_up_to_its_bounds(field: str, lowest: int, highest: int | None) -> None:
    accepted({f"spec.{field}": lowest})
    [error] = spec_errors({f"spec.{field}": lowest - 1})
    assert error.startswith(f"spec.{field}: ")
    assert " is below " in error
    if highest is not None:
        accepted({f"spec.{field}": highest})
        assert spec_errors({f"spec.{field}": highest + 1}) == [
            f"spec.{field}: {highest + 1} is above the maximum of {highest}"
        ]


@pytest.mark.parametrize(
    ("name", "highest"), [("minInstances", 8), ("maxInstances", 10_000), ("partitionsPerTask", 1000)]
)
def test_automatic_scaling_has_bounds(name: str, highest: int) -> None:
    for value in (1, highest):
        accepted({"spec.executor.scaling": {"mode": "Auto", name: value}})
    for value in (0, highest + 1):
        assert spec_errors({"spec.executor.scaling": {"mode": "Auto", name: value}})


def reset(**fields: object) -> dict[str, object]:
    return {"spec.offsets": {"reset": {"nonce": "1", "to": "Offsets", **fields}}}


@pytest.mark.parametrize("name", ["partition", "offset"])
def test_the_offsets_of_a_reset_have_bounds(name: str) -> None:
    highest = {"partition": 2**31 - 1, "offset": 2**53 - 1}[name]
    here = f"spec.offsets.reset.partitions[0].{name}"
    start = {"topic": "flights", "partition": 0, "offset": 0}
    for value in (0, highest):
        accepted(reset(partitions=[start | {name: value}]))
    assert spec_errors(reset(partitions=[start | {name: -1}])) == [f"{here}: -1 is below the minimum of 0"]
    assert spec_errors(reset(partitions=[start | {name: highest + 1}])) == [
        f"{here}: {highest + 1} is above the maximum of {highest}"
    ]


def test_a_reset_lists_at_least_one_offset() -> None:
    assert spec_errors(reset(partitions=[])) == ["spec.offsets.reset.partitions: is empty: set at least one entry"]


@pytest.mark.parametrize(("nonce", "valid"), [("n", True), ("n" * 63, True), ("", False), ("n" * 64, False)])
def test_the_nonce_of_a_reset_is_a_short_text(nonce: str, valid: bool) -> None:
    changes = {"spec.offsets": {"reset": {"nonce": nonce, "to": "Earliest"}}}
    if valid:
        accepted(changes)
    else:
        [error] = spec_errors(changes)
        assert error.startswith("spec.offsets.reset.nonce: ")


def test_the_time_of_a_reset_is_a_text_or_milliseconds() -> None:
    times = [
        OffsetResetSpec.model_validate({"nonce": "1", "to": "Timestamp", "timestamp": value}).timestamp
        for value in ("1970-01-01T00:00:01Z", 1_000)
    ]
    assert times == [1_000, 1_000]


def test_a_pod_template_which_may_contain_secrets_is_never_printed() -> None:
    template = {"spec": {"containers": [{"env": [{"name": "TOKEN", "value": "hunter2"}]}]}}
    assert "hunter2" not in f"{DriverSpec(pod_template=template)!r} {ExecutorSpec(pod_template=template)}"


@pytest.mark.parametrize(
    ("name", "error"), [("lake-writer", None), ("Lake", "Lake is not a valid name: "), ("", "is not a valid name: ")]
)
def test_a_service_account_has_a_name_of_kubernetes(name: str, error: str | None) -> None:
    changes = {"spec.serviceAccount": {"name": name}}
    if error is None:
        accepted(changes)
    else:
        [found] = spec_errors(changes)
        assert found.startswith(f"spec.serviceAccount.name: {error}")
