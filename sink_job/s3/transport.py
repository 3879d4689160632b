"""One request to S3: signed and sent by botocore, counted, tried again with growing pauses, its failure put in our
words.

Bodies are not hashed for the signature (0.75 CPU-s/GB): their CRC64NVME travels in a signed header and is verified by
the store, and TLS keeps others' hands off. `Expect: 100-continue` is left out, which would cost a round trip a part.
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

import botocore.session
from botocore.config import Config
from botocore.credentials import CredentialResolver
from botocore.parsers import ResponseParserError

from sink_job.api.errors import SecretNotFound
from sink_job.s3.credentials import DirectoryProvider
from sink_job.s3.errors import FailureAction, S3Failure, failure_of, translate
from sink_job.s3.request_body import ChunkedBody
from sink_job.s3.request_metrics import RequestMetrics
from sink_job.s3.settings import S3Settings

__all__ = ["Transport"]

_T = TypeVar("_T")
_TELL_AFTER = 4
"""Failures in a row before the log speaks of them: one or two are everyday life."""
_log = logging.getLogger(__name__)


class Transport:
    """A connection pool to one bucket. Thread-safe."""

    def __init__(self, settings: S3Settings) -> None:
        self.settings = settings
        self.meter = RequestMetrics()
        self._client: Any = _client(settings)
        self._names: Mapping[str, str] = self._client.meta.method_to_api_mapping
        self._jitter = random.Random()
        self._gave_up = threading.Event()
        self._date: tuple[str, float] | None = None
        self._client.meta.events.register("after-call.s3", self._keep_date)

    def cancel_retries(self) -> None:
        """Ends every pause between tries, now and from now on: what fails raises at once. For a process that shuts
        down."""
        self._gave_up.set()

    @property
    def date(self) -> tuple[str, float] | None:
        """The `Date` of the store's last answer, and how many seconds ago it was read; None before the first."""
        if self._date is None:
            return None
        said, read_at = self._date
        return said, time.monotonic() - read_at

    def _keep_date(self, http_response: Any, **_: object) -> None:
        said = http_response.headers.get("date")
        if said is not None:
            self._date = said, time.monotonic()

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def call(
        self,
        operation: str,
        *,
        key: str | None = None,
        body: ChunkedBody | None = None,
        expects: str | None = None,
        **params: object,
    ) -> Mapping[str, Any]:
        """One request by botocore's name for it (`upload_part`). Returns botocore's answer; one without the field
        `expects` (a 200 whose body got lost) is tried again like a failure.

        Raises an S3Outcome, ConfigurationError, or TransientError when it failed for longer than the policy's patience.
        """

        def attempt(again: bool) -> Mapping[str, Any]:
            answer = self.once(operation, key=key, body=body, again=again, **params)
            if expects is not None and expects not in answer:
                raise ResponseParserError(f"the answer lacks {expects}")
            return answer

        return self.persist(operation, key, attempt)

    def once(
        self, operation: str, *, key: str | None, body: ChunkedBody | None = None, again: bool, **params: object
    ) -> Mapping[str, Any]:
        """One try, for use inside `persist`. Raises what botocore raises."""
        self.meter.request(self._names[operation], sent=0 if body is None else len(body), again=again)
        params["Bucket"] = self.settings.bucket
        if key is not None:
            params["Key"] = key
        if body is not None:
            body.seek(0)
            params["Body"] = body
        answer: Mapping[str, Any] = getattr(self._client, operation)(**params)
        return answer

    def persist(self, operation: str, key: str | None, attempt: Callable[[bool], _T]) -> _T:
        """Calls `attempt(is it a repetition)` until it succeeds, or fails in a way that trying again won't mend."""
        failures, first_failure, conflicts = 0, 0.0, 0
        while True:
            try:
                return attempt(failures > 0)
            except Exception as error:
                trouble = failure_of(error)
                if trouble is None:
                    raise
                now = time.monotonic()
                failures += 1
                first_failure = first_failure or now
                conflicts += trouble.kind is FailureAction.CONFLICT
                self.meter.failed(trouble.code)
                if not self._wait(operation, trouble, failures, conflicts, now - first_failure):
                    raise self._error(trouble, operation, key, now - first_failure) from error

    def _wait(self, operation: str, trouble: S3Failure, failures: int, conflicts: int, since_first_s: float) -> bool:
        """Pauses before the next try; False: there is no next try."""
        policy = self.settings.retry
        if trouble.kind in (FailureAction.OUTCOME, FailureAction.CONFIGURATION) or conflicts > policy.conflicts:
            return False
        pause = policy.pause(failures, since_first_s, self._jitter, trouble.retry_after_s)
        if failures == _TELL_AFTER and pause is not None:
            _log.warning(
                "%s: %s keeps failing and is tried again for up to %.0f s: %s",
                self.settings.url,
                self._names[operation],
                policy.patience_s,
                trouble.text,
            )
        return pause is not None and not self._gave_up.wait(pause)

    def _error(self, trouble: S3Failure, operation: str, key: str | None, tried_for_s: float) -> Exception:
        doing = self._names[operation]
        return translate(trouble, doing=doing, bucket=self.settings.bucket, key=key, tried_for_s=tried_for_s)


def _client(settings: S3Settings) -> Any:
    session = botocore.session.Session()
    if settings.credentials_dir is not None:
        chain = CredentialResolver(providers=[DirectoryProvider(settings.credentials_dir)])
        session.register_component("credential_provider", chain)
    if settings.ca_file is not None and not settings.ca_file.is_file():
        raise SecretNotFound(f"{settings.url}: the file of certificate authorities {settings.ca_file} is not there")
    client = session.create_client(
        "s3",
        region_name=settings.region,
        endpoint_url=settings.endpoint,
        verify=None if settings.ca_file is None else str(settings.ca_file),
        config=Config(
            connect_timeout=settings.connect_timeout_s,
            read_timeout=settings.read_timeout_s,
            max_pool_connections=settings.max_connections,
            tcp_keepalive=True,
            user_agent_extra=f"s3sink/{_version()}",
            retries={"total_max_attempts": 1, "mode": "standard"},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            s3={
                "addressing_style": "path" if settings.path_style else "auto",
                "payload_signing_enabled": False,
            },
        ),
    )
    client.meta.events.register_last("before-call.s3", _without_expect)
    return client


def _without_expect(params: dict[str, Any], **_: object) -> None:
    params["headers"].pop("Expect", None)


def _version() -> str:
    try:
        return version("s3sink")
    except PackageNotFoundError:
        return "0"
