"""Parts of one size, with a server that rejects other ones: the check of a store, and kills of a driver.

`tests/unit/coordinator/test_kills.py` kills in memory, before each effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devtools.faults.s3_proxy import FaultProxy
from devtools.s3 import S3Server
from sink_job.cli.store_checks import Check, Outcome, check_store
from tests.data.test_crash_points import ALL, EFFECTS, LOG, Undisturbed, expect_same_after_kills, through
from tests.support.equal_parts import equal_parts_only
from tests.support.sink_fixture import SinkFixture

pytestmark = pytest.mark.data

GIVEN: dict[str, Any] = {"flush_size": 5, "max_records": 2, "part_size": "5Mi", "equal_parts": True}
"""Records have 1.8 MB, and objects up to 9 MB: the first part ends inside a record."""


@pytest.fixture(scope="module")
def rejecting(s3: S3Server) -> Iterator[Any]:
    with equal_parts_only(s3.endpoint) as server:
        yield server


@pytest.fixture(scope="module")
def undisturbed(rejecting: Any, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    with FaultProxy(rejecting.endpoint) as proxy:
        sink_fixture = SinkFixture.new(rejecting.endpoint, tmp_path_factory.mktemp("undisturbed"))
        through(sink_fixture, proxy).run(LOG, ALL, **GIVEN)
        counts = {effect: proxy.count(matches) for effect, matches in EFFECTS.items()}
        sizes = {request.size for request in proxy.requests if request.kind == "UploadPart" and request.part == 1}
    assert max(sizes) == 5 << 20
    return Undisturbed(sink_fixture.contents(), sink_fixture.group(), counts)


@pytest.mark.parametrize("effect", ["a part", "a staged remainder", "a record", "a completion"])
def test_a_kill_leaves_the_same_objects_of_equal_parts_and_no_orphans(
    rejecting: Any, undisturbed: Undisturbed, tmp_path: Path, effect: str
) -> None:
    expect_same_after_kills(rejecting, undisturbed, tmp_path, LOG, GIVEN, effect, "after")


def test_the_bytes_of_objects_do_not_depend_on_equal_parts(
    s3: S3Server, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    other = SinkFixture.new(s3.endpoint, tmp_path)
    other.run(LOG, ALL, **{**GIVEN, "equal_parts": False})
    assert other.contents() == undisturbed.contents


def test_check_store_reports_a_server_that_needs_equal_parts(rejecting: Any, tmp_path: Path) -> None:
    s3 = SinkFixture.new(rejecting.endpoint, tmp_path).s3

    def checked(equal_parts: bool) -> Check:
        checks = check_store(s3, "topics/_s3sink/parts/", s3.server_now_ms, equal_parts=equal_parts)
        return next(check for check in checks if check.name == "multipart upload")

    without, with_it = checked(False), checked(True)
    assert (without.outcome, with_it.outcome) == (Outcome.FAILED, Outcome.OK)
    assert without.message.endswith("Set spec.s3.equalParts: true")
    assert list(s3.list("topics/_s3sink/parts/")) == []
