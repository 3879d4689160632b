"""What is asked of the bucket itself: is it there, what time is it there, which rules has it."""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from botocore.exceptions import ClientError

from sink_job.s3.transport import Transport

__all__ = ["BucketCalls", "date_ms", "millis"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class BucketCalls:
    """The calls on the bucket. Each raises ConfigurationError and TransientError."""

    _transport: Transport

    def check_access(self) -> None:
        """Asks whether the bucket is there and may be listed. Raises ConfigurationError with what is wrong."""
        self._transport.call("list_objects_v2", MaxKeys=1)

    def server_now_ms(self) -> int:
        """The store's clock now, in whole seconds and up to two behind (servers keep the header for a while); this
        host's if the store does not tell. To order events, compare `last_modified_ms` and `initiated_ms` instead.
        """
        told = date_ms(self._transport.call("list_objects_v2", MaxKeys=1))
        return int(time.time() * 1000) if told is None else told

    def clock_ms(self) -> int | None:
        """The store's clock now, by the `Date` of its last answer and the time since; asks the store nothing. None
        before the first answer, and for a store that sends no date."""
        if self._transport.date is None:
            return None
        said, seconds_ago = self._transport.date
        read = _date_ms(said)
        return None if read is None else read + int(seconds_ago * 1000)

    def lifecycle_rules(self) -> Sequence[Mapping[str, Any]]:
        """The bucket's lifecycle rules as S3 words them; none, if none were ever set."""

        def attempt(again: bool) -> Sequence[Mapping[str, Any]]:
            try:
                answer = self._transport.once("get_bucket_lifecycle_configuration", key=None, again=again)
            except ClientError as error:
                if error.response["Error"]["Code"] == "NoSuchLifecycleConfiguration":
                    return ()
                raise
            rules: Sequence[Mapping[str, Any]] = answer.get("Rules", ())
            return rules

        return self._transport.persist("get_bucket_lifecycle_configuration", None, attempt)

    def keeps_versions(self) -> bool:
        """Whether the bucket keeps old versions of its objects."""
        return bool(self._transport.call("get_bucket_versioning").get("Status") == "Enabled")


def millis(moment: datetime) -> int:
    """Milliseconds since the epoch of a moment with its zone, exactly."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def date_ms(answer: Mapping[str, Any]) -> int | None:
    """The `Date` of an answer, None if it has none."""
    said = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    return None if said is None else _date_ms(said)


def _date_ms(said: str) -> int | None:
    try:
        moment = parsedate_to_datetime(said)
    except ValueError:
        return None
    return millis(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))
