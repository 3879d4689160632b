"""Attributes of objects in a manifest."""

from __future__ import annotations

import pytest

from tests.unit.api.manifests import accepted, spec_errors


def test_objects_have_no_attributes_by_default() -> None:
    s3 = accepted().spec.s3
    assert (s3.storage_class, s3.acl, s3.tags) == (None, None, {})


@pytest.mark.parametrize("key", ["", "aws:team", "AWS:team", "a" * 129, "a;b"])
def test_a_key_that_s3_rejects_is_reported(key: str) -> None:
    (error,) = spec_errors({"spec.s3.tags": {key: "x"}})
    assert error.startswith("spec.s3.tags: ")
    assert "is not the key of a tag: S3 allows" in error


@pytest.mark.parametrize("value", ["a" * 257, "a;b"])
def test_a_value_that_s3_rejects_is_reported(value: str) -> None:
    (error,) = spec_errors({"spec.s3.tags": {"team": value}})
    assert error.startswith("spec.s3.tags")


def test_more_than_ten_tags_are_rejected() -> None:
    (error,) = spec_errors({"spec.s3.tags": {f"k{n}": "" for n in range(11)}})
    assert error.startswith("spec.s3.tags: ")


@pytest.mark.parametrize("name", ["Glacier", "DeepArchive", "GLACIER", "STANDARD_IA"])
def test_classes_that_cannot_be_read_back_and_unknown_ones_are_rejected(name: str) -> None:
    (error,) = spec_errors({"spec.s3.storageClass": name})
    assert error.startswith(f"spec.s3.storageClass: {name} is not ")
