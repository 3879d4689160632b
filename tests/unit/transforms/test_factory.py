"""The transform of a section."""

from __future__ import annotations

import pytest

from sink_job.api.enums import TransformType
from sink_job.api.sections.transforms_section import TransformSpec
from sink_job.transforms.factory import transform_of

NEEDED = {"field": "a", "source": "Topic", "fields": ["a"], "renames": {"a": "b"}, "timestampType": "UnixTime"}


@pytest.mark.parametrize("kind", TransformType)
def test_each_type_has_a_transform_but_a_filter(kind: TransformType) -> None:
    found = transform_of(TransformSpec.model_validate({"type": kind, **NEEDED}))
    assert (found is None) is (kind is TransformType.FILTER)


@pytest.mark.parametrize("kind", ["Insert", "Extract", "Hoist", "Timestamp"])
def test_an_incomplete_section_is_an_error(kind: str) -> None:
    with pytest.raises(ValueError, match=f"the transform {kind} is incomplete"):
        transform_of(TransformSpec.model_validate({"type": kind}))
