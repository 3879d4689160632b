"""The table of keys: its rows, and how a key is found."""

from __future__ import annotations

from collections import Counter

from sink_job.api.field_errors import connector_key, dotted, every_field
from sink_job.api.spec import Spec
from sink_job.migrate.table import (
    KeyOwner,
    KeyRow,
    KeyTable,
    Treatment,
    ValueForm,
    different,
    field,
    key_table,
    without_effect,
)


def test_no_key_has_two_rows() -> None:
    counts = Counter((row.owner, row.key) for row in key_table().rows)
    assert [key for key, count in counts.items() if count > 1] == []


def test_every_field_of_a_row_exists_in_the_manifest() -> None:
    known = {dotted(path) for path, _ in every_field(Spec)}
    assert {row.field for row in key_table().rows if row.field} - known == set()


def test_every_row_has_a_field_or_says_why_it_has_none() -> None:
    assert [row.key for row in key_table().rows if (row.treatment is Treatment.FIELD) != bool(row.field)] == []
    assert [row.key for row in key_table().rows if not row.field and not row.note] == []


def test_every_connector_key_of_the_models_has_a_row_with_its_field() -> None:
    rows = {row.key: row.field for row in key_table().rows if row.field}
    for path, spec_field in every_field(Spec):
        for key in connector_key(spec_field).split(", ") if connector_key(spec_field) else ():
            assert rows[key.removeprefix("value.converter.") if key != "value.converter" else key] == dotted(path)


def test_an_exact_row_precedes_one_for_several_keys_and_the_longest_precedes_others() -> None:
    table = KeyTable([*without_effect("a.* a.b.* a.b.c", "none")])
    found = {key: table.row(key) for key in ("a.x", "a.b.x", "a.b.c", "b")}
    assert {key: row and row.key for key, row in found.items()} == {
        "a.x": "a.*",
        "a.b.x": "a.b.*",
        "a.b.c": "a.b.c",
        "b": None,
    }


def test_the_nearest_key_is_suggested_also_for_common_misnamed_ones() -> None:
    assert key_table().nearest("flush.sise") == "flush.size"
    assert key_table().nearest("s3.endpoint") == "store.url"
    assert key_table().nearest("x" * 10_000) is None


def test_rows_of_converters_are_found_for_their_owner_only() -> None:
    assert key_table().row("schema.registry.url", KeyOwner.CONFLUENT) is not None
    assert key_table().row("schema.registry.url", KeyOwner.GLUE) is None


def test_the_sentence_of_a_row_has_no_marks_of_markdown() -> None:
    rows = [*different("k", "none: use `x`"), *different("k", "none"), field("k", "s3.bucket")]
    assert [row.sentence for row in rows] == ["use x", "it has no counterpart", ""]
    assert KeyRow("k", Treatment.FIELD, form=ValueForm.SECRET).is_secret
