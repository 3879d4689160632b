"""A driver that is killed with SIGKILL while records are rejected: the next one leaves the same dead-letter objects.

`tests/data/test_crash_points.py` has the same without rejected records, at each effect;
`tests/unit/coordinator/test_kills.py` kills in memory, before each effect.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from devtools.faults.s3_proxy import FaultProxy
from devtools.s3 import S3Server
from tests.data.test_crash_points import ALL, EFFECTS, Undisturbed, expect_same_after_kills, through
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import SyntheticLog

pytestmark = pytest.mark.data


class HalfRejected(SyntheticLog):
    """A log of which every second record is not JSON."""

    def value(self, partition: int, offset: int) -> bytes:
        value = super().value(partition, offset)
        return value[1:] if offset % 2 else value


LOG = HalfRejected(records=9, value_bytes=1_500_000, gaps=frozenset({4}))
"""A dead letter has two megabytes: the third one fills a part."""
GIVEN: dict[str, Any] = {
    "flush_size": 4,
    "max_records": 4,
    "part_size": "5Mi",
    "errors": {"tolerance": "All", "deadLetters": {"prefix": "rejected"}},
}


@pytest.fixture(scope="module")
def undisturbed(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    with FaultProxy(s3.endpoint) as proxy:
        sink_fixture = SinkFixture.new(s3.endpoint, tmp_path_factory.mktemp("undisturbed"))
        through(sink_fixture, proxy).run(LOG, ALL, **GIVEN)
        counts = {effect: proxy.count(matches) for effect, matches in EFFECTS.items()}
    contents = sink_fixture.contents()
    assert [key for key in contents if key.startswith("rejected/")]
    return Undisturbed(contents, sink_fixture.group(), counts)


@pytest.mark.parametrize("effect", ["a part", "a staged remainder", "a record", "a completion"])
def test_a_kill_leaves_the_same_dead_letters_and_no_orphans(
    s3: S3Server, undisturbed: Undisturbed, tmp_path: Path, effect: str
) -> None:
    expect_same_after_kills(s3, undisturbed, tmp_path, LOG, GIVEN, effect, "after")
