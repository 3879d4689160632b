"""The feature `two-buckets`: ledger and staging are in a bucket of their own, which fails alone, and drivers start with
a manifest that names another place for them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from sink_job.api.spec import Sink
from sink_job.coordinator import coordinator
from sink_job.ledger.first_claim import ledger_place
from sink_job.s3 import S3Settings
from sink_job.s3.settings import LedgerBucket

TWO_BUCKETS: Final = "two-buckets"
FRONT: Final = "archive/"
FOLDER: Final = f"{FRONT}topics/_s3sink/"
"""What the keys of the ledger's bucket begin with."""

SETTINGS: Final = S3Settings(bucket="archive", region="us-east-1", endpoint="http://simulated")
WITH_LEDGER: Final = replace(
    SETTINGS, ledger=LedgerBucket(settings=replace(SETTINGS, bucket="ledgers"), front=FRONT, folder=FOLDER)
)
"""The settings of a run with the feature."""

MISPLACED: Final = 0.15
"""The probability that a driver has another place than the first one."""


def without_place(sink: Sink) -> Sink:
    """The manifest with the ledger in the objects' bucket."""
    s3 = sink.spec.s3.model_copy(update={"ledger": None})
    return sink.model_copy(update={"spec": sink.spec.model_copy(update={"s3": s3})})


def bucket_of_outage(rng: random.Random) -> bool | None:
    """Whether an outage is one of the ledger's bucket; None: of both."""
    return rng.choice((True, False, None))


def place_of_the_ledger_ignored() -> Sequence[AbstractContextManager[Any]]:
    """A driver does not notice that the ledger is in another place."""
    return [
        patch.object(ledger_place, "recorded", lambda s3, root: ""),
        patch.object(coordinator, "check_no_other_ledger", lambda *_: None),
    ]


PLACE_MUTATIONS: dict[str, Callable[[], Sequence[AbstractContextManager[Any]]]] = {
    "place_of_the_ledger_ignored": place_of_the_ledger_ignored
}
PLACE_INCLUDE = dict.fromkeys(PLACE_MUTATIONS, (TWO_BUCKETS,))
