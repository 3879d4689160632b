"""`s3sink verify`: each kind of damage is reported with its first offset."""

from __future__ import annotations

import pytest

from sink_job.api.errors import ConfigurationError
from sink_job.verify.results import FindingType
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import SyntheticLog
from tests.support.verify_sink import (
    ROOT,
    findings,
    key_of,
    rewrite_published,
    shallow,
    take_snapshot,
)

pytestmark = pytest.mark.data


def test_a_missing_object_is_reported(written: SinkFixture) -> None:
    written.s3.delete([key_of(written, 1, 30)])
    assert findings(shallow(written)) == [("log-1", FindingType.OBJECT_MISSING, 30)]


def test_different_bytes_of_the_same_size_are_reported(written: SinkFixture) -> None:
    key = key_of(written, 0, 50)
    written.put(key, written.content(key).replace(b"50", b"51"))
    assert findings(shallow(written)) == [("log-0", FindingType.OBJECT_MISMATCH, 50)]


def test_bytes_of_another_size_are_reported(written: SinkFixture) -> None:
    written.put(key_of(written, 0, 50), b"{}\n")
    assert findings(shallow(written)) == [("log-0", FindingType.OBJECT_MISMATCH, 50)]


def test_a_copy_with_the_same_bytes_passes(written: SinkFixture) -> None:
    """The ETag differs; the checksum of the whole object is equal."""
    key = key_of(written, 0, 50)
    written.put(key, written.content(key))
    assert findings(shallow(written)) == []


def test_an_object_that_overlaps_others_is_reported(written: SinkFixture) -> None:
    written.put("topics/log/partition=0/log+0+0000000055.json", written.content(key_of(written, 0, 50)))
    assert findings(shallow(written)) == [("log-0", FindingType.UNTRACKED_OBJECT, 55)]


def test_a_missing_object_line_is_reported(written: SinkFixture) -> None:
    take_snapshot(written)
    key = key_of(written, 0, 20)
    rewrite_published(written, lambda line: None if line.object and line.object.key == key else line)
    assert findings(shallow(written)) == [
        ("log-0", FindingType.OFFSETS_MISSING, 20),
        ("log-0", FindingType.UNTRACKED_OBJECT, 20),
    ]


def test_a_missing_rotation_line_is_reported(written: SinkFixture) -> None:
    take_snapshot(written)
    rewrite_published(
        written,
        lambda line: None if line.rotation and line.rotation.partition == 0 and line.rotation.start == 0 else line,
    )
    assert findings(shallow(written)) == [("log-0", FindingType.OFFSETS_MISSING, 0)]


def test_a_missing_published_file_is_reported(written: SinkFixture) -> None:
    take_snapshot(written)
    written.s3.delete([listed.key for listed in written.s3.list(f"{ROOT}published/")])
    with pytest.raises(ConfigurationError, match="published log"):
        shallow(written)


def test_a_committed_offset_that_is_ahead_is_reported(written: SinkFixture) -> None:
    written.set_group({"log-0": 101, "log-1": 100})
    assert findings(shallow(written)) == [("log-0", FindingType.COMMITTED_OFFSET_AHEAD, 100)]


def test_a_truncated_log_is_reported(written: SinkFixture) -> None:
    assert findings(shallow(written, SyntheticLog(partitions=2, records=70))) == [
        ("log-0", FindingType.LOG_TRUNCATED, 70),
        ("log-1", FindingType.LOG_TRUNCATED, 70),
    ]


def test_a_sink_without_a_ledger_is_not_verified(sink_fixture: SinkFixture) -> None:
    with pytest.raises(ConfigurationError, match="there is no ledger"):
        shallow(sink_fixture)
