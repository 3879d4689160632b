"""Prices of S3 requests and storage, for the cost in a month. The user can give others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from sink_job.api.errors import InvalidSpec

DAYS: Final = 30
"""Days of a month."""

WRITES: Final = frozenset(
    (
        "PutObject",
        "CreateMultipartUpload",
        "UploadPart",
        "CompleteMultipartUpload",
        "ListObjectsV2",
        "ListMultipartUploads",
        "PutObjectTagging",
    )
)
"""Operations at the price of PUT, COPY, POST and LIST. Deletions and aborted uploads are free."""

READS: Final = frozenset(("GetObject", "HeadObject"))


class Prices(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Prices in `currency`: of 1,000 requests to write or list, and to read, and of a GB (10⁹ bytes) stored for a
    month. `source` and `date`: where and when they were read."""

    writes: float
    reads: float
    storage: float
    currency: str = "USD"
    source: str = ""
    date: str = ""


DEFAULT: Final = Prices(
    writes=0.005,
    reads=0.0004,
    storage=0.023,
    source="list prices of S3 Standard in us-east-1, the first 50 TB",
    date="2026-11",
)


@dataclass(frozen=True)
class Cost:
    """The cost of a month: of the requests, and of what a month adds to the storage, kept for a month."""

    requests: float
    storage: float


def cost(requests_a_day: Mapping[str, int], stored_a_day: int, prices: Prices) -> Cost:
    """The cost of 30 days. `stored_a_day` is in bytes."""
    writes = sum(count for name, count in requests_a_day.items() if name in WRITES)
    reads = sum(count for name, count in requests_a_day.items() if name in READS)
    of_requests = DAYS * (writes * prices.writes + reads * prices.reads) / 1000
    return Cost(of_requests, DAYS * stored_a_day / 1e9 * prices.storage)


def parse_prices(text: bytes, name: str) -> Prices:
    """Prices from YAML or JSON. Raises InvalidSpec, which names the file."""
    try:
        found = msgspec.yaml.decode(text, type=Prices)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidSpec(
            [f"{name}: {error}; it needs writes, reads and storage, such as 0.005, 0.0004, 0.023"]
        ) from None
    if min(found.writes, found.reads, found.storage) < 0:
        raise InvalidSpec([f"{name}: a price is negative"])
    return found
