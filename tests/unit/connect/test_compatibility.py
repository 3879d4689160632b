"""When a schema change closes objects, against the rules of the storage connectors record by record."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from sink_job.api.enums import SchemaCompatibility
from sink_job.connect.compatibility import closes, rejection
from sink_job.connect.projection import can_project
from sink_job.connect.schema import Default, Field, Schema, SchemaType
from tests.unit.connect import oracle, strategies

Mode = SchemaCompatibility
PROJECTING = (Mode.BACKWARD, Mode.FULL, Mode.FORWARD)


def versioned(version: int | None, *fields: Field) -> Schema:
    return Schema(SchemaType.STRUCT, name="R", version=version, fields=(Field("a", Schema(SchemaType.INT32)), *fields))


OLD = versioned(1)
NEW = versioned(2, Field("b", Schema(SchemaType.INT32, default=Default("0"))))
BREAKING = versioned(3, Field("b", Schema(SchemaType.INT32)))


@pytest.mark.parametrize(
    ("mode", "open_schema", "record", "expected"),
    [
        (Mode.NONE, OLD, NEW, True),
        (Mode.NONE, NEW, OLD, True),
        (Mode.NONE, versioned(1), versioned(2), True),
        (Mode.SEPARATE, OLD, NEW, False),
        (Mode.BACKWARD, OLD, NEW, True),
        (Mode.BACKWARD, NEW, OLD, False),
        (Mode.FULL, OLD, NEW, True),
        (Mode.FULL, NEW, OLD, False),
        (Mode.FORWARD, OLD, NEW, False),
        (Mode.FORWARD, NEW, OLD, True),
        (Mode.BACKWARD, BREAKING, OLD, True),
        (Mode.FORWARD, OLD, BREAKING, False),
    ],
)
def test_a_schema_change_closes_as_the_mode_says(
    mode: SchemaCompatibility, open_schema: Schema, record: Schema, expected: bool
) -> None:
    assert closes(mode, open_schema, record) is expected


def test_a_record_of_a_type_that_the_union_of_the_object_lacks_closes_it() -> None:
    """Events of several types in a topic, with a type that only the newer version has."""
    inner = Schema(SchemaType.STRUCT, optional=True, fields=(Field("a", Schema(SchemaType.INT32)),))
    events = [Field(name, structs.replace(inner, name=name)) for name in ("Order", "Payment", "Refund")]
    old, new = (
        Schema(SchemaType.STRUCT, name="io.confluent.connect.avro.Union", version=version, fields=tuple(events[:count]))
        for version, count in ((1, 2), (2, 3))
    )
    assert closes(Mode.FORWARD, old, new)
    assert not closes(Mode.BACKWARD, new, old)


@pytest.mark.parametrize("mode", [each for each in Mode if each is not Mode.SEPARATE])
@pytest.mark.parametrize(("ours", "theirs"), [(2, 1), (1, 2), (1, 1)])
def test_versions_of_two_subjects_have_no_order_so_the_record_closes_the_object(
    mode: SchemaCompatibility, ours: int, theirs: int
) -> None:
    open_schema = structs.replace(versioned(ours), subject="flights-value")
    record = structs.replace(versioned(theirs, *NEW.fields[1:]), subject="example.Flight")
    assert closes(mode, open_schema, record)
    assert closes(mode, record, open_schema)


@pytest.mark.parametrize("mode", Mode)
def test_an_equal_schema_closes_nothing(mode: SchemaCompatibility) -> None:
    assert not closes(mode, OLD, versioned(1))
    assert not closes(mode, None, None)


@pytest.mark.parametrize("mode", [each for each in Mode if each is not Mode.SEPARATE])
def test_a_change_between_schema_and_none_closes(mode: SchemaCompatibility) -> None:
    assert closes(mode, OLD, None)
    assert closes(mode, None, OLD)


@pytest.mark.parametrize("mode", PROJECTING)
def test_a_record_without_version_is_a_data_error_of_a_mode_that_projects(mode: SchemaCompatibility) -> None:
    reason = rejection(mode, versioned(None))
    assert reason == f"its schema R is in no version of its subject, which schemaCompatibility {mode} requires"
    with pytest.raises(ValueError, match="requires schemas with versions"):
        closes(mode, versioned(None), OLD)


@pytest.mark.parametrize("mode", [Mode.NONE, Mode.SEPARATE])
def test_a_record_without_version_is_valid_in_any_other_mode(mode: SchemaCompatibility) -> None:
    assert rejection(mode, versioned(None)) is None


@pytest.mark.parametrize("mode", Mode)
def test_a_record_without_schema_or_with_a_version_is_valid(mode: SchemaCompatibility) -> None:
    assert (rejection(mode, None), rejection(mode, OLD)) == (None, None)


@pytest.mark.parametrize("mode", [Mode.NONE, Mode.BACKWARD, Mode.FORWARD])
@given(data=st.data())
def test_a_change_closes_as_in_the_connector_or_if_projection_is_impossible(
    mode: SchemaCompatibility, data: st.DataObject
) -> None:
    current, record = data.draw(strategies.schema_pairs())
    value = data.draw(strategies.values(record, full=True))
    assert closes(mode, current, record) == (
        oracle.should_change_schema(mode, record, current) or (mode.projects and impossible(record, value, current))
    )


def impossible(record: Schema, value: object, current: Schema) -> bool:
    try:
        oracle.project(record, value, current)
    except oracle.Impossible:
        return True
    return False


@given(mode=st.sampled_from(PROJECTING), pair=strategies.schema_pairs())
def test_a_record_that_does_not_close_can_be_projected(mode: SchemaCompatibility, pair: tuple[Schema, Schema]) -> None:
    current, record = pair
    assert closes(mode, current, record) or record == current or can_project(record, current) is None
