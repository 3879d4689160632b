"""The checks of `s3sink check-store`: the checks of a sink at its start, and checks for large objects.

Each check runs on the real bucket, below the ledger prefix of a sink, and cleans up. A killed check leaves files
below `<prefix>probe/`. The next check or start removes them after an hour.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Final

import msgspec

from sink_job.api.aws_types import TagErrors
from sink_job.api.errors import AccessDenied, ConfigurationError, SinkError, UnsupportedStore
from sink_job.ledger.clocks import checked_now
from sink_job.s3 import (
    ChecksumMismatch,
    EntityTooSmall,
    InvalidPart,
    PreconditionFailed,
    S3Client,
    UploadedPart,
    has_default_retention,
    lifecycle_warning,
    probe,
    probe_encryption,
    probe_object_lock,
)
from sink_job.s3.checksums import combine_all, crc64nvme

PART_SIZES: Final = (5 << 20, 6 << 20, 1)
"""Sizes of the uploaded parts in bytes. The first two are at least S3's minimum."""
EQUAL_PART_SIZES: Final = (5 << 20, 5 << 20, 1)
"""The same, with spec.s3.equalParts."""

_WITHOUT_OBJECTS: Final = ("checksums", "lifecycle rules")
"""The checks that leave no version of an object: a bucket with a default retention would keep it."""

_IN_TRANSIT: Final = (
    "{url}: the store accepted a part with a wrong CRC64NVME checksum, so it does not detect damage in transit. Use a "
    "store that verifies checksums"
)
_NOT_KEPT: Final = (
    "{url}: the store keeps no CRC64NVME checksum of an object, so s3sink compares sizes and ETags. Use a store that "
    "keeps full-object checksums"
)
_UNREADABLE_TAGS: Final = (
    "{url}: the tags of an object cannot be read to check them: the credentials lack s3:GetObjectTagging, which a sink "
    "does not need"
)
_UNREADABLE: Final = (
    "{url}: the bucket's lifecycle rules cannot be read: the store has none, or the credentials lack "
    "s3:GetLifecycleConfiguration and s3:GetBucketVersioning. Make sure that no rule aborts uploads within 7 days or "
    "expires objects below '{prefix}'"
)


class Outcome(StrEnum):
    """The outcome of a check. A warning does not prevent a sink from running."""

    OK = "OK"
    WARNING = "WARNING"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"


class Check(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One check. `message`: the finding and the action to take. `reason` and `exit_code`: those of a sink's error."""

    name: str
    outcome: Outcome
    message: str = ""
    reason: str = ""
    exit_code: int = 0


def check_store(
    s3: S3Client,
    prefix: str,
    host_clock: Callable[[], int],
    *,
    has_attributes: bool = False,
    has_encryption: bool = False,
    equal_parts: bool = False,
    offset_tags: TagErrors | None = None,
    has_lock: bool = False,
) -> Iterator[Check]:
    """Runs all checks on the bucket of `s3`, below `prefix` (ends with `/`), and with `spec.s3.ledger` those of the
    ledger on its bucket, below `prefix` after its front, and yields each result. `has_attributes`:
    objects have a storage class, an ACL or tags. `has_encryption`: the settings have an encryption. `equal_parts`: they
    have equalParts. `offset_tags`: onTagError, if they have offsetTags. `has_lock`:
    they have an objectLock.

    `host_clock` returns ms since 1970-01-01 UTC. Without access, and in a bucket that would lock the files of
    the checks, the later ones are skipped. Uploads 10 MiB, or 11
    MiB without equalParts, and 10 more if the store needs it. A
    SinkError is a result; other errors are raised.
    """
    place = s3.settings.ledger
    checks: Sequence[tuple[str, Callable[[], Sequence[str]]]] = (
        ("access", lambda: _access(s3)),
        ("clock", lambda: _clock(s3, host_clock)),
        ("object lock", lambda: _object_lock(s3, _key(prefix), has_lock)),
        ("conditional writes", lambda: _conditional_writes(s3, prefix)),
        ("multipart upload", lambda: _multipart_upload(s3, prefix, equal_parts)),
        *((("encryption", lambda: _encryption(s3, prefix)),) if has_encryption else ()),
        *((("object attributes", lambda: _attributes(s3, _key(prefix))),) if has_attributes else ()),
        *((("offset tags", lambda: _offset_tags(s3, _key(prefix), offset_tags)),) if offset_tags else ()),
        ("checksums", lambda: _checksums(s3, _key(prefix))),
        ("lifecycle rules", lambda: _lifecycle_rules(s3, prefix, has_ledger=place is None)),
    )
    found = list[Check]()
    for result in _all_results(checks, lambda: place is not None and has_default_retention(s3)):
        found.append(result)
        yield result
    if place is not None:
        has_access = next(each.outcome for each in found if each.name == "access") is not Outcome.FAILED
        yield from _of_ledger(s3.of_ledger, f"{place.front}{prefix}", has_access, has_encryption=has_encryption)


def _of_ledger(ledger: S3Client, root: str, has_access: bool, *, has_encryption: bool) -> Iterator[Check]:
    """The checks of the ledger's bucket. The access was checked with that of the objects' bucket."""
    checks: Sequence[tuple[str, Callable[[], Sequence[str]]]] = (
        ("ledger: object lock", lambda: _object_lock(ledger, _key(root), False)),
        ("ledger: conditional writes", lambda: _conditional_writes(ledger, root)),
        *((("ledger: encryption", lambda: _encryption(ledger, root)),) if has_encryption else ()),
        ("ledger: lifecycle rules", lambda: _lifecycle_rules(ledger, root)),
    )
    if has_access:
        yield from _all_results(checks, lambda: False)
    else:
        yield from (Check(name, Outcome.SKIPPED) for name, _ in checks)


def _all_results(
    checks: Sequence[tuple[str, Callable[[], Sequence[str]]]], is_locked: Callable[[], bool]
) -> Iterator[Check]:
    """The result of each check. After a failure without which nothing can be written the others are skipped, and if the
    bucket `is_locked` those that would leave versions of objects in it."""
    may_write, leaves_nothing = True, True
    for name, check in checks:
        kind = name.removeprefix("ledger: ")
        if not may_write or not (leaves_nothing or kind in _WITHOUT_OBJECTS):
            yield Check(name, Outcome.SKIPPED)
            continue
        result = _result(name, check)
        may_write = kind not in ("access", "object lock") or result.outcome is not Outcome.FAILED
        if kind == "object lock" and may_write:
            leaves_nothing = not is_locked()
        yield result


def exit_code(checks: Sequence[Check]) -> int:
    """The exit code of the command: 0 without a failure, else the exit code of the first failure."""
    return next((check.exit_code for check in checks if check.outcome is Outcome.FAILED), 0)


def _result(name: str, check: Callable[[], Sequence[str]]) -> Check:
    try:
        warnings = check()
    except SinkError as error:
        return Check(name, Outcome.FAILED, str(error), error.reason, error.exit_code)
    return Check(name, Outcome.WARNING if warnings else Outcome.OK, "\n".join(warnings))


def _key(prefix: str) -> str:
    return f"{prefix}probe/{uuid.uuid4().hex}"


def _access(s3: S3Client) -> Sequence[str]:
    s3.check_access()
    return ()


def _clock(s3: S3Client, host_clock: Callable[[], int]) -> Sequence[str]:
    checked_now(host_clock, s3.clock_ms, s3)
    return ()


def _conditional_writes(s3: S3Client, prefix: str) -> Sequence[str]:
    probe(s3, prefix)
    return ()


def _multipart_upload(s3: S3Client, prefix: str, equal_parts: bool) -> Sequence[str]:
    """Uploads an object as a sink does: with parts of different sizes, or with `equal_parts`."""
    if equal_parts:
        return _upload_parts(s3, _key(prefix), EQUAL_PART_SIZES)
    try:
        return _upload_parts(s3, _key(prefix), PART_SIZES)
    except _PartsRejected as error:
        with suppress(_PartsRejected):
            _upload_parts(s3, _key(prefix), EQUAL_PART_SIZES)
            raise UnsupportedStore(
                f"{s3.url}: the store needs parts of one size: {error.answer}. Set spec.s3.equalParts: true"
            ) from None
        raise


def _object_lock(s3: S3Client, key: str, has_lock: bool) -> Sequence[str]:
    """Checks the bucket, and starts an upload with the lock. It is not completed: the object could not be deleted."""
    advice = probe_object_lock(s3, is_required=has_lock)
    if has_lock:
        upload = s3.create_upload(key)
        try:
            s3.upload_part(key, upload, 1, b"locked")
        finally:
            s3.abort(key, upload)
    return () if advice is None else (advice,)


class _PartsRejected(UnsupportedStore):
    """The store rejects an object because of the sizes of its parts. `answer`: what it says."""

    def __init__(self, url: str, answer: str) -> None:
        super().__init__(f"{url}: the store rejects an object of three parts: {answer}. Use another store")
        self.answer = answer


def _upload_parts(s3: S3Client, key: str, sizes: Sequence[int]) -> Sequence[str]:
    """Uploads an object with parts of these sizes. It must have their total size and combined checksum."""
    upload = s3.create_upload(key, temporary=True)
    try:
        parts = [s3.upload_part(key, upload, number, bytes(size)) for number, size in enumerate(sizes, start=1)]
        _complete(s3, key, upload, parts)
        stored = s3.head(key)
        expected = combine_all((part.crc, part.size) for part in parts)
        if stored is None or stored.size != sum(sizes) or stored.crc64nvme not in (None, expected):
            raise UnsupportedStore(
                f"{s3.url}: an object of {len(parts)} parts does not have their size and checksum. Use another store"
            )
        return () if stored.crc64nvme is not None else (_NOT_KEPT.format(url=s3.url),)
    finally:
        s3.abort(key, upload)
        s3.delete([key])


def _encryption(s3: S3Client, prefix: str) -> Sequence[str]:
    probe_encryption(s3, prefix)
    return ()


def _attributes(s3: S3Client, key: str) -> Sequence[str]:
    """Uploads an object with its attributes, except a lock, and asks for them."""
    upload = s3.create_upload(key, locked=False)
    try:
        _complete(s3, key, upload, [s3.upload_part(key, upload, 1, b"attributes")])
        ignored = s3.ignored_attributes(key)
    except AccessDenied as error:
        if "get_object_tagging" not in str(error) and "GetObjectTagging" not in str(error):
            raise
        return (_UNREADABLE_TAGS.format(url=s3.url),)
    finally:
        s3.abort(key, upload)
        s3.delete([key])
    return [f"{s3.url}: the store ignores spec.s3.{field}: remove it, or use another store" for field in ignored]


def _offset_tags(s3: S3Client, key: str, errors: TagErrors | None) -> Sequence[str]:
    """Uploads an object, puts tags with its offsets, and asks for them. An error is a warning with `Ignore`."""
    upload = s3.create_upload(key, temporary=True)
    try:
        _complete(s3, key, upload, [s3.upload_part(key, upload, 1, b"tags")])
        s3.put_offset_tags(key, 0, 1, 2)
    except ConfigurationError as error:
        if errors is not TagErrors.IGNORE:
            raise
        return (f"{error}. Objects get no tags with their offsets (onTagError: Ignore)",)
    else:
        return _unkept_tags(s3, key)
    finally:
        s3.abort(key, upload)
        s3.delete([key])


def _unkept_tags(s3: S3Client, key: str) -> Sequence[str]:
    try:
        is_kept = s3.has_offset_tags(key, 0, 1, 2)
    except AccessDenied:
        return (_UNREADABLE_TAGS.format(url=s3.url),)
    return () if is_kept else (f"{s3.url}: the store ignores spec.s3.offsetTags: remove it, or use another store",)


def _complete(s3: S3Client, key: str, upload: str, parts: Sequence[UploadedPart]) -> None:
    try:
        with suppress(PreconditionFailed):  # the first attempt succeeded, but its response was lost
            s3.complete(key, upload, parts)
    except (InvalidPart, EntityTooSmall) as error:
        raise _PartsRejected(s3.url, str(error)) from None


def _checksums(s3: S3Client, key: str) -> Sequence[str]:
    """Uploads a part with a wrong checksum. The store must reject it."""
    upload = s3.create_upload(key, temporary=True)
    try:
        s3.upload_part(key, upload, 1, b"some bytes", crc64nvme(b"other bytes"))
    except ChecksumMismatch:
        return ()
    finally:
        s3.abort(key, upload)
    return (_IN_TRANSIT.format(url=s3.url),)


def _lifecycle_rules(s3: S3Client, prefix: str, *, has_ledger: bool = True) -> Sequence[str]:
    try:
        s3.lifecycle_rules()
        s3.keeps_versions()
    except SinkError:
        return (_UNREADABLE.format(url=s3.url, prefix=prefix),)
    advice = lifecycle_warning(s3, prefix, has_ledger=has_ledger)
    return () if advice is None else (advice,)
