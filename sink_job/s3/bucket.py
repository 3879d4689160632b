"""Requests about the bucket itself: access, the store's clock, lifecycle rules, versioning and Object Lock."""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from botocore.exceptions import ClientError

from sink_job.s3.object_lock import NO_CONFIGURATION, BucketLock
from sink_job.s3.transport import Transport

__all__ = ["BucketCalls", "date_ms", "millis"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class BucketCalls:
    """The requests about the bucket. Each raises ConfigurationError and TransientError."""

    _transport: Transport

    def check_access(self) -> None:
        """Checks that the bucket exists and can be listed. Raises ConfigurationError with the reason if not."""
        self._list_one(self._transport)

    def server_now_ms(self) -> int:
        """The store's current time, in ms since the epoch.

        It is in whole seconds and can be up to two seconds late, because servers cache the `Date` header. If the store
        sends no `Date`, it is this host's time. To order events, compare `last_modified_ms` and `initiated_ms` instead.
        """
        server_ms = date_ms(self._list_one(self._transport))
        return int(time.time() * 1000) if server_ms is None else server_ms

    def _list_one(self, _transport: Transport) -> Mapping[str, Any]:
        """A listing of at most one object of a bucket, below the prefix that a role may list."""
        prefix = _transport.settings.prefix
        where: dict[str, Any] = {"Prefix": prefix} if prefix else {}
        return _transport.call("list_objects_v2", MaxKeys=1, **where)

    def clock_ms(self) -> int | None:
        """The store's current time in ms since the epoch, from the `Date` of its last answer and the time since then.

        Sends no request. None before the first answer, and for a store that sends no `Date`.
        """
        if self._transport.date is None:
            return None
        date, seconds_ago = self._transport.date
        server_ms = _date_ms(date)
        return None if server_ms is None else server_ms + int(seconds_ago * 1000)

    def lifecycle_rules(self) -> Sequence[Mapping[str, Any]]:
        """The bucket's lifecycle rules in the form of S3's API; empty if none are set."""

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

    def bucket_lock(self) -> BucketLock:
        """Object Lock of the bucket. Also raises AccessDenied without s3:GetBucketObjectLockConfiguration."""

        def attempt(again: bool) -> BucketLock:
            try:
                answer = self._transport.once("get_object_lock_configuration", key=None, again=again)
            except ClientError as error:
                if error.response["Error"]["Code"] in NO_CONFIGURATION:
                    return BucketLock()
                raise
            return BucketLock.of(answer.get("ObjectLockConfiguration", {}))

        return self._transport.persist("get_object_lock_configuration", None, attempt)

    def keeps_versions(self) -> bool:
        """Whether versioning is enabled for the bucket."""
        return bool(self._transport.call("get_bucket_versioning").get("Status") == "Enabled")


def millis(moment: datetime) -> int:
    """Milliseconds since the epoch of a timezone-aware `moment`."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def date_ms(answer: Mapping[str, Any]) -> int | None:
    """The `Date` of an answer in ms since the epoch; None if it has none, or an unreadable one."""
    date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    return None if date is None else _date_ms(date)


def _date_ms(date: str) -> int | None:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    return millis(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))
