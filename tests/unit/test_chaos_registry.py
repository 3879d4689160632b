"""The scenarios of `make chaos ARGS=--real` with a schema registry: their plan, and the comparison of their objects."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from typing import Any

import fastavro
import pytest

from devtools.chaos import registry_plan
from devtools.chaos.load import Burst
from devtools.chaos.registry_values import LANGUAGES, VERSIONS, VersionedValues, canonical
from devtools.chaos.scenario_plan import plan_scenarios
from devtools.chaos.value_forms import RegisteredForm
from sink_job.api.sections.format_section import FormatSpec

# -- the plan ----------------------------------------------------------------------------------------------------------


def test_a_plan_of_200_cycles_has_each_language_output_and_compatibility_with_a_registry() -> None:
    registered = [each for each in plan_scenarios(1, 200) if each.has_registry]
    assert {each.spec["schemaCompatibility"] for each in registered} == {*registry_plan.COMPATIBILITIES}
    assert {each.spec["format"]["converter"] for each in registered} == {*LANGUAGES}
    assert {each.spec["format"]["output"] for each in registered} == {"Json", "Avro", "Parquet"}
    for each in registered:
        assert FormatSpec.model_validate(each.spec["format"]).registry is not None


@pytest.mark.parametrize("seed", range(5))
def test_a_fault_of_the_registry_is_in_a_scenario_with_a_registry(seed: int) -> None:
    for scenario in plan_scenarios(seed, 200):
        faults = [cycle.fault for cycle in scenario.cycles]
        assert scenario.has_registry or not any(map(registry_plan.is_of_registry, faults))
        assert scenario.has_registry == ("schemaCompatibility" in scenario.spec)


# -- the comparison ----------------------------------------------------------------------------------------------------


class Produced:
    """Values of a topic, one of each version in turn, and what the comparison keeps of them."""

    def __init__(self, converter: str) -> None:
        self.values = VersionedValues(converter, "t-w001", 40)
        self.form = RegisteredForm(self.values)
        self.contents: dict[int, bytes] = {}
        for version in VERSIONS:
            burst = Burst(records=1, seconds=1, active=(0,), versions=(version,))
            value = self.values.value(random.Random(version), f"c1-{version:06d}", 1_700_000_000_000, burst)
            assert value is not None
            self.contents[version] = self.form.content(value)

    def record(self, version: int) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.contents[version])
        return found

    def projected(self, version: int, to: int) -> dict[str, Any]:
        return self.values.projected(self.record(version), to)

    def why_not(self, compatibility: str, versions: Sequence[int], records: Sequence[dict[str, Any]]) -> str | None:
        return self.form.why_not(compatibility, [self.contents[each] for each in versions], [*map(canonical, records)])


@pytest.fixture(params=LANGUAGES, scope="module")
def produced(request: pytest.FixtureRequest) -> Produced:
    return Produced(request.param)


def test_a_value_has_the_wire_format_of_confluents_serializers_and_the_content_of_its_version(
    produced: Produced,
) -> None:
    value = produced.values.value(
        random.Random(3), "c1-000003", 1_700_000_000_000, Burst(records=1, seconds=1, active=(0,), versions=(3,))
    )
    assert value is not None
    assert value[:5] == b"\0" + (42).to_bytes(4, "big")
    assert json.loads(produced.form.content(value))["id"] == "c1-000003"


def test_a_record_and_its_projection_have_the_same_identity(produced: Produced) -> None:
    projection = canonical(produced.projected(3, 1))
    assert produced.form.identity(projection) == produced.form.identity(produced.contents[3]) == b"c1-000003"


@pytest.mark.parametrize("compatibility", registry_plan.COMPATIBILITIES)
def test_records_of_one_version_pass_in_each_mode(produced: Produced, compatibility: str) -> None:
    assert produced.why_not(compatibility, [3, 3], [produced.record(3)] * 2) is None


@pytest.mark.parametrize("compatibility", ["Backward", "Full"])
def test_older_records_pass_under_the_version_of_the_object(produced: Produced, compatibility: str) -> None:
    assert produced.why_not(compatibility, [3, 1], [produced.record(3), produced.projected(1, 3)]) is None


def test_newer_records_pass_under_the_version_of_the_object_with_forward(produced: Produced) -> None:
    assert produced.why_not("Forward", [1, 3], [produced.record(1), produced.projected(3, 1)]) is None


@pytest.mark.parametrize("compatibility", ["None", "Separate"])
def test_two_versions_in_an_object_are_found_where_a_change_closes_it(produced: Produced, compatibility: str) -> None:
    wrong = produced.why_not(compatibility, [3, 1], [produced.record(3), produced.projected(1, 3)])
    assert wrong == "the record c1-000001 of version 1 is in an object of version 3"


def test_a_newer_record_that_lost_its_field_is_found_with_backward(produced: Produced) -> None:
    wrong = produced.why_not("Backward", [1, 3], [produced.record(1), produced.projected(3, 1)])
    assert wrong == "the record c1-000003 of version 3 is in an object of version 1"


def test_a_record_under_its_own_schema_in_the_object_of_another_version_is_found(produced: Produced) -> None:
    wrong = produced.why_not("Backward", [3, 1], [produced.record(3), produced.record(1)])
    assert wrong is not None
    assert "not those of version 3" in wrong


def test_a_changed_value_and_a_wrong_default_are_found(produced: Produced) -> None:
    changed = produced.record(3) | {"vip": not produced.record(3)["vip"]}
    assert "vip is " in (produced.why_not("None", [3], [changed]) or "")
    defaulted = produced.projected(1, 3) | {"score": -9.0}
    assert "score is -9.0" in (produced.why_not("Backward", [3, 1], [produced.record(3), defaulted]) or "")


def test_the_records_of_json_lines_and_of_an_avro_file_are_compared_by_their_content() -> None:
    made = Produced("Avro")
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(json.loads(made.values.text(3))), [made.record(3)])
    assert made.form.records("log+0+0.avro", out.getvalue()) == [made.contents[3]]
    line = json.dumps(made.record(3), ensure_ascii=False).encode() + b"\n"
    records = made.form.records("log+0+0.json", line)
    assert made.why_not("None", [3], [json.loads(each) for each in records]) is None
    assert made.form.row_size(records[0], ".json") == len(line)
