"""Versions of an object, over pages and beside longer keys."""

from __future__ import annotations

from sink_job.s3 import S3Client
from tests.unit.s3.conftest import Reply, ScriptedStore


def listed(*versions: tuple[str, str], more: tuple[str, str] | None = None) -> Reply:
    """A page with these keys and version ids; `more` are the markers of the next page."""
    entries = "".join(
        f"<Version><Key>{key}</Key><VersionId>{version}</VersionId><Size>4</Size><ETag>&quot;e&quot;</ETag>"
        "<IsLatest>false</IsLatest><LastModified>2026-11-01T00:00:00.000Z</LastModified></Version>"
        for key, version in versions
    )
    markers = (
        ""
        if more is None
        else f"<NextKeyMarker>{more[0]}</NextKeyMarker><NextVersionIdMarker>{more[1]}</NextVersionIdMarker>"
    )
    truncated = str(more is not None).lower()
    return Reply(
        body=f"<ListVersionsResult><IsTruncated>{truncated}</IsTruncated>{markers}{entries}</ListVersionsResult>"
    )


def test_the_versions_of_exactly_this_key_are_listed(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(listed(("key", "v2"), ("key", "v1"), ("key.longer", "v9")))
    assert [(v.version_id, v.size, v.etag) for v in s3.versions("key")] == [("v2", 4, '"e"'), ("v1", 4, '"e"')]
    (request,) = store.received
    assert "prefix=key" in request.path


def test_further_pages_of_the_key_are_fetched_and_no_others(s3: S3Client, store: ScriptedStore) -> None:
    store.replies += [
        listed(("key", "v3"), more=("key", "v3")),
        listed(("key", "v2"), ("key.longer", "v9"), more=("key.longer", "v9")),
    ]
    assert [v.version_id for v in s3.versions("key", page=1)] == ["v3", "v2"]
    assert "version-id-marker=v3" in store.received[1].path
    assert len(store.received) == 2


def test_a_range_of_a_version_is_read(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(Reply(206, "ECI", {"Content-Range": "bytes 1-3/5"}))
    assert s3.get_range("key", 1, 3, version="v1") == b"ECI"
    assert "versionId=v1" in store.received[0].path


def test_a_key_without_versions_has_none(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(listed())
    assert s3.versions("key") == []
