"""Tags with the offsets of an object: what is sent, and what an error does."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator

import pytest

from sink_job.api.errors import AccessDenied
from sink_job.s3 import S3Client, S3Settings
from sink_job.s3.tagging import offset_tags
from tests.unit.s3.conftest import Reply, ScriptedStore, error_reply

Tagging = Callable[..., S3Client]


@pytest.fixture
def tagging(settings: S3Settings) -> Iterator[Tagging]:
    clients = []

    def connected(*, ignores: bool = True, **given: object) -> S3Client:
        changed = {"offset_tags": True, "ignores_tag_errors": ignores, **given}
        clients.append(S3Client(dataclasses.replace(settings, **changed)))  # type: ignore[arg-type]
        return clients[-1]

    yield connected
    for client in clients:
        client.close()


def test_the_names_are_those_of_kafka_connect() -> None:
    assert offset_tags(3, 12, 9) == {"startOffset": "3", "endOffset": "12", "recordCount": "9"}


def test_tags_of_the_settings_are_put_again(store: ScriptedStore, tagging: Tagging) -> None:
    store.otherwise = Reply()
    tagging(attributes=(("Tagging", "cost+center=a%2Fb&team="),)).tag_offsets("k", 3, 12, 9)
    (request,) = store.received
    assert request.path.endswith("/k?tagging")
    tags = b"".join(
        b"<Tag><Key>%s</Key><Value>%s</Value></Tag>" % pair
        for pair in (
            (b"cost center", b"a/b"),
            (b"team", b""),
            (b"startOffset", b"3"),
            (b"endOffset", b"12"),
            (b"recordCount", b"9"),
        )
    )
    assert tags.replace(b"<Value></Value>", b"<Value />") in request.body.replace(b"<Value></Value>", b"<Value />")


def test_without_the_setting_nothing_is_sent(store: ScriptedStore, tagging: Tagging) -> None:
    tagging(offset_tags=False).tag_offsets("k", 3, 12, 9)
    assert store.received == []


@pytest.mark.parametrize("ignores", [True, False])
def test_an_object_that_was_moved_away_is_no_error(store: ScriptedStore, tagging: Tagging, ignores: bool) -> None:
    store.otherwise = error_reply(404, "NoSuchKey")
    tagging(ignores=ignores).tag_offsets("k", 3, 12, 9)


def test_an_error_is_logged_once_and_ignored(
    store: ScriptedStore, tagging: Tagging, caplog: pytest.LogCaptureFixture
) -> None:
    store.otherwise = error_reply(403, "AccessDenied")
    s3 = tagging()
    with caplog.at_level(logging.WARNING):
        for key in ("a", "b"):
            s3.tag_offsets(key, 3, 12, 9)
    (message,) = caplog.messages
    assert message.startswith("an object has no tags with its offsets (onTagError: Ignore; logged once): ")
    assert message.endswith("spec.s3.offsetTags needs s3:PutObjectTagging")


def test_with_fail_an_error_is_raised_with_the_permission(store: ScriptedStore, tagging: Tagging) -> None:
    store.otherwise = error_reply(403, "AccessDenied")
    with pytest.raises(AccessDenied, match=r"spec\.s3\.offsetTags needs s3:PutObjectTagging$"):
        tagging(ignores=False).tag_offsets("k", 3, 12, 9)
