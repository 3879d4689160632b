"""The cost of a month."""

from __future__ import annotations

import pytest

from sink_job.api.errors import InvalidSpec
from sink_job.plan.prices import DEFAULT, cost, parse_prices


def test_writes_reads_and_storage_have_their_prices() -> None:
    requests = {"PutObject": 1_000_000, "GetObject": 1_000_000, "DeleteObjects": 10**9, "AbortMultipartUpload": 10**9}
    found = cost(requests, 10**9, DEFAULT)
    assert found.requests == pytest.approx(30 * (5 + 0.4))
    assert found.storage == pytest.approx(30 * 0.023)


def test_prices_come_from_a_file() -> None:
    found = parse_prices(b"writes: 0.01\nreads: 0\nstorage: 0.5\ncurrency: EUR\n", "prices.yaml")
    assert (found.writes, found.reads, found.storage, found.currency) == (0.01, 0, 0.5, "EUR")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"writes: 1",
        b"writes: x\nreads: 1\nstorage: 1",
        b"writes: -1\nreads: 1\nstorage: 1",
        b"\xff",
        b"[1]",
        b"{:",
    ],
)
def test_a_wrong_file_is_one_clear_error(text: bytes) -> None:
    with pytest.raises(InvalidSpec, match=r"^prices\.yaml: "):
        parse_prices(text, "prices.yaml")
