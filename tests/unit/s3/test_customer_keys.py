"""Keys of customers: the files, and which key a request has."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from sink_job.api.errors import ConfigurationError, InvalidCredentials
from sink_job.s3 import S3Client, S3Settings
from sink_job.s3.customer_keys import CustomerKeys, customer_key_id
from tests.unit.s3.conftest import Reply, ScriptedStore, error_reply

_HEADER = "x-amz-server-side-encryption-customer-key"


def text_of(name: str) -> str:
    return base64.b64encode(name.encode() * 32).decode()


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("a", "b"):
        (tmp_path / name).write_text(text_of(name) + "\n")
    return tmp_path / "a", tmp_path / "b"


@pytest.fixture
def s3(settings: S3Settings, files: tuple[Path, Path]) -> Iterator[S3Client]:
    client = S3Client(dataclasses.replace(settings, customer_keys=files))
    yield client
    client.close()


@pytest.mark.parametrize("content", ["", "short", base64.b64encode(b"a" * 31).decode(), "ä" * 44])
def test_a_file_without_a_key_is_reported_without_its_content(tmp_path: Path, content: str) -> None:
    (tmp_path / "key").write_text(content)
    with pytest.raises(InvalidCredentials, match="is not the base64 of 32 bytes: create one with openssl") as error:
        CustomerKeys((tmp_path / "key",))
    assert not content or content not in str(error.value)


def test_the_id_of_a_key_differs_and_does_not_reveal_it(files: tuple[Path, Path]) -> None:
    one, other = (customer_key_id((file,)) for file in files)
    assert one != other
    assert customer_key_id(files) == one
    assert customer_key_id(()) is None
    assert one is not None
    assert (len(one), one in text_of("a")) == (16, False)


def test_a_new_object_has_the_current_key(s3: S3Client, store: ScriptedStore) -> None:
    s3.put("k", b"content")
    (request,) = store.received
    assert request.headers[_HEADER] == text_of("a")
    assert request.headers[f"{_HEADER}-md5"] != ""
    assert request.headers["x-amz-server-side-encryption-customer-algorithm"] == "AES256"


def test_what_exists_is_tried_with_the_previous_key_with_all_its_bytes(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(error_reply(400, "InvalidRequest"))
    s3.upload_part("k", "u", 1, b"content")
    assert [(each.headers[_HEADER], each.body) for each in store.received] == [
        (text_of("a"), b"content"),
        (text_of("b"), b"content"),
    ]


def test_the_error_for_the_current_key_is_reported_if_no_key_is_accepted(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.extend([error_reply(403, "AccessDenied"), *[error_reply(400, "InvalidRequest")] * 2])
    with pytest.raises(ConfigurationError, match=r"access denied.*in spec\.s3\.encryption\.previousKeys"):
        s3.get("k")
    assert [each.headers.get(_HEADER) for each in store.received] == [text_of("a"), text_of("b"), None]


def test_other_errors_and_new_objects_are_not_tried_again(s3: S3Client, store: ScriptedStore) -> None:
    store.otherwise = error_reply(400, "InvalidRequest")
    with pytest.raises(ConfigurationError):
        s3.put("k", b"content")
    assert len(store.received) == 1


def test_requests_without_content_have_no_key(s3: S3Client, store: ScriptedStore) -> None:
    store.otherwise = Reply(status=204)
    s3.abort("k", "u")
    (request,) = store.received
    assert _HEADER not in request.headers
