"""Credentials of an IAM role, from AWS STS. They are renewed before they end, in the process that uses them.

botocore's own renew fifteen minutes before the end, so those of fifteen minutes would be renewed at each request. They
also trust the host's clock; here the store's answer counts (`expire`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

from botocore.credentials import CredentialProvider, Credentials, ReadOnlyCredentials
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

if TYPE_CHECKING:
    from sink_job.api.sections.aws_access import AssumeRoleSpec

_MAX_MARGIN_S: Final = 600.0
"""Maximum time between the renewal of credentials and their end, in seconds."""
_RETRY_S: Final = 5.0
"""Pause after a failed renewal while the credentials are still valid, in seconds."""
_LATENCY_S: Final = 2.0
"""Credentials end this much earlier here: a request must reach the store before their end."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class AssumedRole:
    """A role to assume. `policy`: a session policy (JSON) that limits the role; None: no limit."""

    arn: str
    external_id: str | None = None
    session_name: str = "s3sink"
    duration_s: int = 3600
    policy: str | None = None

    @classmethod
    def of(cls, spec: AssumeRoleSpec, policy: str | None = None) -> AssumedRole:
        """The role of a manifest."""
        return cls(
            arn=spec.arn,
            external_id=spec.external_id,
            session_name=spec.session_name,
            duration_s=spec.duration // 1000,
            policy=policy,
        )

    def request(self) -> dict[str, Any]:
        """The parameters of AssumeRole."""
        optional = {"ExternalId": self.external_id, "Policy": self.policy}
        return {
            "RoleArn": self.arn,
            "RoleSessionName": self.session_name,
            "DurationSeconds": self.duration_s,
            **{name: value for name, value in optional.items() if value is not None},
        }


@dataclass(frozen=True)
class _Session:
    """The keys of a session; when to renew them and when they end, on the monotonic clock, in seconds."""

    keys: ReadOnlyCredentials
    renew_at: float
    ends_at: float


class RoleCredentials(Credentials):
    """botocore credentials of a role. The first ones are fetched for the first request. Thread-safe.

    While a thread renews them, the others use the previous ones until those end. If STS does not answer, a request
    fails only after that. Raises the errors of botocore.
    """

    def __init__(self, role: AssumedRole, source: Credentials, create_client: Callable[..., Any]) -> None:
        """`source`: the credentials to assume the role with. `create_client`: creates a client of a service."""
        self._role = role
        self._source = source
        self._create_client = create_client
        self._lock = threading.Lock()
        self._session: _Session | None = None
        self._rejected: ReadOnlyCredentials | None = None
        self._asked = 0
        self._error: Exception | None = None
        super().__init__("", "", method=RoleProvider.METHOD)  # not used: requests are signed with the frozen keys

    def __repr__(self) -> str:
        return f"RoleCredentials({self._role.arn!r})"

    @property
    def keys(self) -> ReadOnlyCredentials | None:
        """The keys of the session; None before the first request."""
        session = self._session
        return None if session is None else session.keys

    def expire(self, rejected: ReadOnlyCredentials | None) -> None:
        """Renews the credentials before the next request: the store does not accept these any more. Does nothing if
        another thread has renewed them already."""
        if rejected is not None:
            self._rejected = rejected

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        """The keys of the session."""
        session = self._session
        if session is None or not self._is_usable(session):
            session = self._assumed_once()
        elif time.monotonic() >= session.renew_at and self._lock.acquire(blocking=False):
            try:
                session = self._session = self._renewed(session)
            finally:
                self._lock.release()
        return session.keys

    def _is_usable(self, session: _Session) -> bool:
        return session.keys is not self._rejected and time.monotonic() < session.ends_at

    def _assumed_once(self) -> _Session:
        """A new session. One thread asks for it; those that wait meanwhile get the same session, or the same error."""
        asked = self._asked
        with self._lock:
            session = self._session
            if session is not None and self._is_usable(session):
                return session
            if self._error is not None and asked != self._asked:
                raise self._error
            self._error = None
            try:
                session = self._session = self._assumed()
            except (BotoCoreError, ClientError) as error:
                self._error = error
                raise
            finally:
                self._asked += 1
            return session

    def _renewed(self, session: _Session) -> _Session:
        try:
            return self._assumed()
        except (BotoCoreError, ClientError) as error:
            _log.warning("%s: the credentials of the role cannot be renewed yet: %s", self._role.arn, error)
            return _Session(session.keys, time.monotonic() + _RETRY_S, session.ends_at)

    def _assumed(self) -> _Session:
        keys = self._source.get_frozen_credentials()
        client = self._create_client(
            "sts",
            aws_access_key_id=keys.access_key,
            aws_secret_access_key=keys.secret_key,
            aws_session_token=keys.token,
        )
        try:
            started = time.monotonic()
            answer = client.assume_role(**self._role.request())
        finally:
            client.close()
        found = answer["Credentials"]
        lifetime = max(0.0, _lifetime_s(answer, found["Expiration"]) - _LATENCY_S)
        margin = min(_MAX_MARGIN_S, lifetime / 4)
        return _Session(
            ReadOnlyCredentials(found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"]),
            started + lifetime - margin,
            started + lifetime,
        )


class RoleProvider(CredentialProvider):
    """The only credential provider of a client with a role."""

    METHOD = "assume-role"

    def __init__(self, role: AssumedRole, session: Any, create_client: Callable[..., Any]) -> None:
        """`session`: botocore's session with the credentials to assume the role with."""
        super().__init__()
        self._role = role
        self._base = session
        self._create_client = create_client

    def load(self) -> RoleCredentials:
        """Raises NoCredentialsError if there are none to assume the role with."""
        source = self._base.get_credentials()
        if source is None:
            raise NoCredentialsError
        return RoleCredentials(self._role, source, self._create_client)


def _lifetime_s(answer: Mapping[str, Any], end: datetime) -> float:
    """The time from the answer to `end`, by the clock of STS; by this host's if the answer has no date."""
    date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    try:
        now = parsedate_to_datetime(date) if date else datetime.now(UTC)
    except ValueError:
        now = datetime.now(UTC)
    return (end - (now if now.tzinfo is not None else now.replace(tzinfo=UTC))).total_seconds()
