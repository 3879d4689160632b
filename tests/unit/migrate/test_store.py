"""Bucket, keys of objects and credentials."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.migrate.findings import Severity
from tests.unit.migrate.test_conversion import findings_of, spec_of

KEYS = {"aws.access.key.id": "AKIAEXAMPLE", "aws.secret.access.key": "hunter2hunter2"}
PROVIDER = "s3.credentials.provider.class"


def s3_of(settings: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = spec_of(settings)["s3"]
    return found


def test_the_connector_s_default_region_is_written_out() -> None:
    assert s3_of({"s3.region": ""})["region"] == "us-west-2"


@pytest.mark.parametrize("bucket", ["", "<bucket>", "Bucket", "${env:BUCKET}", "a..b"])
def test_a_bucket_that_is_none_is_reported_and_to_be_written(bucket: str) -> None:
    assert s3_of({"s3.bucket.name": bucket})["bucket"] == "replace-me"
    assert len(findings_of({"s3.bucket.name": bucket})) == 1


def test_an_endpoint_has_the_connector_s_path_style_and_insecure_where_needed() -> None:
    found = s3_of({"store.url": "http://minio:9000"})
    assert (found["endpoint"], found["pathStyle"], found["insecure"]) == ("http://minio:9000", True, True)
    found = s3_of({"store.url": "https://minio:9000", "s3.path.style.access.enabled": "false"})
    assert (found["pathStyle"], "insecure" in found) == (False, False)
    assert "insecure" not in s3_of({"store.url": "http://127.0.0.1:9000"})


@pytest.mark.parametrize(
    "url", ["minio:9000", "http://u:hunter2@minio", "http://minio/bucket", "http://<host>", "${env:U}"]
)
def test_an_endpoint_that_is_not_plain_is_reported(url: str) -> None:
    (found,) = findings_of({"store.url": url})
    assert "hunter2" not in found


def test_both_keys_become_a_secret_and_one_alone_has_no_effect() -> None:
    assert s3_of(KEYS)["credentials"] == {"secret": "flights-s3"}
    assert "credentials" not in s3_of({"aws.access.key.id": "AKIAEXAMPLE"})


def test_a_secret_of_strimzi_with_the_right_keys_is_used_as_it_is() -> None:
    same = {
        key: f"${{secrets:kafka/s3:{name}}}"
        for key, name in zip(KEYS, ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), strict=True)
    }
    assert s3_of(same)["credentials"] == {"secret": "s3"}
    assert s3_of({**same, "aws.secret.access.key": "${secrets:kafka/s3:secret}"})["credentials"] == {
        "secret": "flights-s3"
    }


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        ("com.amazonaws.auth.DefaultAWSCredentialsProviderChain", False),
        ("software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider", False),
        ("com.example.Provider", True),
    ],
)
def test_providers_of_the_default_chain_are_left_out_and_others_are_reported(name: str, reported: bool) -> None:
    assert bool(findings_of({PROVIDER: name})) == reported
    assert findings_of({PROVIDER: name, **KEYS}) == []  # the keys precede the provider


def test_sizes_of_parts_are_those_of_s3() -> None:
    assert s3_of({"s3.part.size": "26214400"})["partSize"] == "25Mi"
    assert s3_of({"s3.part.size": "52428801"})["partSize"] == 52428801
    assert len(findings_of({"s3.part.size": "1024"})) == 1


def test_an_empty_directory_of_topics_is_kept_and_slashes_are_reported() -> None:
    assert s3_of({"topics.dir": ""})["topicsDir"] == ""
    assert s3_of({"topics.dir": "/a//b/"})["topicsDir"] == "a/b"
    assert len(findings_of({"topics.dir": "/a//b/"})) == 1
    assert len(findings_of({"topics.dir": "_s3sink"}, Severity.IMPOSSIBLE)) == 1


def test_delimiters_and_padding_are_taken_over() -> None:
    found = s3_of({"directory.delim": "-", "file.delim": "_", "filename.offset.zero.pad.width": "0"})
    assert (found["directoryDelimiter"], found["fileDelimiter"], found["offsetPadWidth"]) == ("-", "_", 0)


@pytest.mark.parametrize(
    "settings",
    [
        {"directory.delim": "+"},
        {"file.delim": "a1"},
        {"file.delim": ""},
        {"filename.offset.zero.pad.width": "100"},
        {"directory.delim": "-", "topics.dir": "-a"},
    ],
)
def test_keys_that_this_sink_cannot_write_cannot_be_converted(settings: dict[str, str]) -> None:
    assert len(findings_of(settings, Severity.IMPOSSIBLE)) >= 1


def test_a_store_that_does_not_work_is_reported() -> None:
    (finding,) = findings_of({"store.url": "https://storage.googleapis.com"})
    assert "Google Cloud Storage lacks" in finding
    assert findings_of({"store.url": "https://storage.example.com"}) == []


def test_a_delimiter_at_the_end_of_the_default_directory_cannot_be_converted() -> None:
    assert len(findings_of({"directory.delim": "topics"}, Severity.IMPOSSIBLE)) == 1
