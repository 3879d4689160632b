"""Object Lock: retention and legal hold of objects, and what the bucket has by default.

Only objects are locked, when their upload starts. Ledger, staging and temporary objects are deleted regularly; under
the default retention of a bucket each deleted version of them would remain until its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sink_job.api.sections.aws_access import ObjectLockSpec

NO_CONFIGURATION: Final = ("ObjectLockConfigurationNotFoundError", "NoSuchObjectLockConfiguration")
"""S3's codes for a bucket without Object Lock."""


@dataclass(frozen=True, kw_only=True)
class ObjectLock:
    """The lock of an object. `mode`: GOVERNANCE or COMPLIANCE; `retain_s`: seconds from the start of its upload; both
    None: no retention."""

    mode: str | None = None
    retain_s: int | None = None
    legal_hold: bool = False

    @classmethod
    def of(cls, spec: ObjectLockSpec) -> ObjectLock:
        """The lock of a manifest."""
        return cls(
            mode=None if spec.mode is None else spec.mode.value.upper(),
            retain_s=None if spec.retain is None else spec.retain // 1000,
            legal_hold=spec.legal_hold,
        )

    @property
    def actions(self) -> list[str]:
        """The permissions that it needs."""
        needed = {"s3:PutObjectRetention": self.mode is not None, "s3:PutObjectLegalHold": self.legal_hold}
        return [action for action, is_needed in needed.items() if is_needed]

    def parameters(self, now: datetime) -> Mapping[str, Any]:
        """The parameters of CreateMultipartUpload at `now`."""
        found: dict[str, Any] = {}
        if self.mode is not None and self.retain_s is not None:
            until = now.replace(microsecond=0) + timedelta(seconds=self.retain_s)
            found = {"ObjectLockMode": self.mode, "ObjectLockRetainUntilDate": until}
        return found | ({"ObjectLockLegalHoldStatus": "ON"} if self.legal_hold else {})


@dataclass(frozen=True)
class BucketLock:
    """Object Lock of a bucket. `default`: its default retention, such as `GOVERNANCE, 30 days`; empty without one."""

    is_enabled: bool = False
    default: str = ""

    @classmethod
    def of(cls, configuration: Mapping[str, Any]) -> BucketLock:
        """The lock of a configuration in the form of S3's API."""
        retention = configuration.get("Rule", {}).get("DefaultRetention", {})
        days, years = retention.get("Days"), retention.get("Years")
        length = f"{days} days" if days else f"{years} years" if years else ""
        default = ", ".join(filter(None, (retention.get("Mode", ""), length)))
        return cls(configuration.get("ObjectLockEnabled") == "Enabled", default)


def lock_parameters(lock: ObjectLock | None) -> Mapping[str, Any]:
    """The parameters of CreateMultipartUpload, now."""
    return {} if lock is None else lock.parameters(datetime.now(UTC))
