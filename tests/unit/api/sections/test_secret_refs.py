"""References to secrets: names and keys that a Kubernetes Secret can have."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from sink_job.api.sections.secret_refs import SecretKey, SecretRef


@pytest.mark.parametrize("name", ["s3-keys", "a", "a.b-c.d", "a" * 63])
@pytest.mark.parametrize("key", ["ca.crt", "_", "A-b.C", "k" * 253])
def test_names_and_keys_of_kubernetes_are_accepted(name: str, key: str) -> None:
    found = SecretKey(secret=name, key=key)
    assert (found.secret, found.key) == (name, key)


@pytest.mark.parametrize("name", ["", "S3", "s3_keys", "-a", "a-", "a/b", "..", "a..b", "a" * 254, "a\n"])
def test_another_name_of_a_secret_is_rejected(name: str) -> None:
    with pytest.raises(ValidationError):
        SecretRef(secret=name)


@pytest.mark.parametrize("key", ["", "a/b", ".", "..", "a b", "k" * 254, "a\n"])
def test_a_key_that_leaves_the_directory_of_its_secret_is_rejected(key: str) -> None:
    with pytest.raises(ValidationError):
        SecretKey(secret="s3-keys", key=key)


def test_a_reference_to_a_whole_secret_has_no_key() -> None:
    with pytest.raises(ValidationError):
        SecretRef.model_validate({"secret": "s3-keys", "key": "ca.crt"})


def test_a_reference_to_one_value_needs_its_key() -> None:
    with pytest.raises(ValidationError):
        SecretKey.model_validate({"secret": "s3-keys"})
