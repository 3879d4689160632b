"""The section `spec.transforms`."""

from __future__ import annotations

from sink_job.api.spec import ObjectSettings
from tests.unit.api.manifests import accepted

TRANSFORMS = [{"type": "Drop", "fields": ["a"], "when": {"tombstone": False}}, {"type": "Flatten"}]


def test_settings_of_objects_contain_only_the_fields_that_are_set() -> None:
    """So a field of a later version does not change the settings of open objects (P8)."""
    settings = accepted({"spec.transforms": TRANSFORMS}).object_settings()
    dumped = settings.model_dump(mode="json")["transforms"]
    assert dumped == [
        {"type": "Drop", "when": {"tombstone": False, "not": False}, "fields": ["a"]},
        {"type": "Flatten"},
    ]
    assert ObjectSettings.model_validate_json(settings.model_dump_json()) == settings


def test_settings_without_transforms_do_not_have_the_field() -> None:
    assert "transforms" not in accepted().object_settings().model_dump_json()
