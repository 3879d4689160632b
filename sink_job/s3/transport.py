"""One request to S3: signs and sends it with botocore, counts it, retries it, and maps its failure to an error.

The content is not hashed for the signature (0.75 CPU-s/GB). Its CRC64NVME is in a signed header and verified by the
store, and TLS protects it in transit. `Expect: 100-continue` is not sent: it would cost one round trip per part.
"""

import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from sink_job.api.errors import SecretNotFound
from sink_job.api.version import package_version
from sink_job.s3.access.assumed_role import RoleCredentials
from sink_job.s3.customer_keys import ANOTHER_KEY, NO_KEY, CustomerKeys, is_other_key
from sink_job.s3.errors import EXPIRED, IN_OBJECTS, FailureAction, S3Failure, failure_of, in_section, translate
from sink_job.s3.proxy import proxies
from sink_job.s3.request_body import ChunkedBody
from sink_job.s3.request_metrics import RequestMetrics
from sink_job.s3.session import new_session
from sink_job.s3.settings import S3Settings

__all__ = ["Transport"]

_T = TypeVar("_T")
_LOG_AFTER_FAILURES = 4
"""Number of failures in a row after which a warning is logged. One or two are common."""
_log = logging.getLogger(__name__)


class Transport:
    """A client with a connection pool, for one bucket. Thread-safe."""

    def __init__(self, settings: S3Settings) -> None:
        self.settings = settings
        self.meter = RequestMetrics()
        session = new_session(settings)
        self._credentials = _credentials(session, settings)
        self._customer_keys = CustomerKeys(settings.customer_keys)
        self._client: Any = _client(session, settings)
        self._names: Mapping[str, str] = self._client.meta.method_to_api_mapping
        self._jitter = random.Random()
        self._cancelled = threading.Event()
        self._date: tuple[str, float] | None = None
        self._client.meta.events.register("after-call.s3", self._keep_date)

    def for_key(self, key: str) -> "Transport":
        """The transport of the bucket with `key`, or with the keys that begin with it."""
        return self

    def cancel_retries(self) -> None:
        """Cancels the retries in progress and all later ones: a failed request raises at once. For the shutdown of the
        process."""
        self._cancelled.set()

    @property
    def date(self) -> tuple[str, float] | None:
        """The `Date` of the store's last answer, and the seconds since it was received; None before the first
        answer."""
        if self._date is None:
            return None
        date, received_at = self._date
        return date, time.monotonic() - received_at

    def _keep_date(self, http_response: Any, **_: object) -> None:
        date = http_response.headers.get("date")
        if date is not None:
            self._date = date, time.monotonic()

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
        """Sends one request, with retries. `operation` is botocore's method name (`upload_part`).

        Returns botocore's answer. An answer without the field `expects` (a 200 whose body was lost) is retried like a
        failure. Raises an S3Outcome or ConfigurationError. Raises TransientError when the retry time of the policy is
        over.
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
        """Sends one request without retries, for use in `persist`. `again`: it is a retry. Raises botocore's errors."""
        self.meter.request(self._names[operation], sent=0 if body is None else len(body), again=again)
        params["Bucket"] = self.settings.bucket
        if self.settings.every_request:
            accepted = self._client.meta.service_model.operation_model(self._names[operation]).input_shape.members
            params.update((name, value) for name, value in self.settings.every_request if name in accepted)
        if key is not None:
            params["Key"] = key
        if self.settings.customer_keys:
            return self._with_customer_keys(operation, body, params)
        return self._sent(operation, body, params)

    def _sent(self, operation: str, body: ChunkedBody | None, params: Mapping[str, object]) -> Mapping[str, Any]:
        content: Mapping[str, object] = {}
        if body is not None:
            body.seek(0)
            content = {"Body": body}
        answer: Mapping[str, Any] = getattr(self._client, operation)(**params, **content)
        return answer

    def _with_customer_keys(
        self, operation: str, body: ChunkedBody | None, params: Mapping[str, object]
    ) -> Mapping[str, Any]:
        """Sends a request with the current key, and with each previous one and none until the store accepts it. Raises
        the error for the current key."""
        name = self._names[operation]
        members = self._client.meta.service_model.operation_model(name).input_shape.members
        if "SSECustomerKey" not in members:
            return self._sent(operation, body, params)
        current, *previous = self._customer_keys.of(name)
        try:
            return self._sent(operation, body, {**params, **current})
        except ClientError as error:
            if not is_other_key(error):
                raise
            for parameters in previous:
                with contextlib.suppress(ClientError):
                    return self._sent(operation, body, {**params, **parameters})
            raise

    def persist(self, operation: str, key: str | None, attempt: Callable[[bool], _T]) -> _T:
        """Calls `attempt(is_retry)` until it succeeds, fails permanently, or the retry time is over. Raises as
        `call`."""
        failures, first_failure, conflicts = 0, 0.0, 0
        role = self._credentials if isinstance(self._credentials, RoleCredentials) else None
        while True:
            keys = None if role is None else role.keys
            try:
                return attempt(failures > 0)
            except Exception as error:
                failure = failure_of(error)
                if failure is None:
                    raise
                now = time.monotonic()
                failures += 1
                first_failure = first_failure or now
                conflicts += failure.kind is FailureAction.CONFLICT
                self.meter.failed(failure.code)
                if failure.code in EXPIRED and role is not None:
                    role.expire(keys or role.keys)
                if not self._wait(operation, failure, failures, conflicts, now - first_failure):
                    raise self._error(failure, operation, key, now - first_failure) from error

    def _wait(self, operation: str, failure: S3Failure, failures: int, conflicts: int, since_first_s: float) -> bool:
        """Waits before the next attempt. Returns False if there is no next attempt."""
        policy = self.settings.retry
        if failure.kind in (FailureAction.OUTCOME, FailureAction.CONFIGURATION) or conflicts > policy.conflicts:
            return False
        pause = policy.pause(failures, since_first_s, self._jitter, failure.retry_after_s)
        if failures == _LOG_AFTER_FAILURES and pause is not None:
            _log.warning(
                "%s: %s failed %d times in a row and is retried for up to %.0f s: %s",
                self.settings.url,
                self._names[operation],
                failures,
                policy.max_elapsed_s,
                failure.text,
            )
        return pause is not None and not self._cancelled.wait(pause)

    def _error(self, failure: S3Failure, operation: str, key: str | None, tried_for_s: float) -> Exception:
        doing = self._names[operation]
        if self.settings.section != IN_OBJECTS and failure.kind is FailureAction.CONFIGURATION:
            has_own = self.settings.credentials_dir is not None and self.settings.role is None
            failure = replace(failure, text=in_section(failure.text, self.settings.section, own_credentials=has_own))
        if self.settings.customer_keys and failure.kind is FailureAction.CONFIGURATION:
            failure = replace(failure, text=f"{failure.text}; {ANOTHER_KEY}")
        elif doing == "HeadObject" and failure.code == "400":
            failure = replace(failure, text=f"{failure.text}; {NO_KEY}")
        return translate(failure, doing=doing, bucket=self.settings.bucket, key=key, tried_for_s=tried_for_s)


def _credentials(session: Any, settings: S3Settings) -> Any:
    """The credentials of the session. Raises ConfigurationError if a role has none to assume it with."""
    try:
        return session.get_credentials()
    except BotoCoreError as error:
        failure = failure_of(error)
        assert failure is not None
        raise failure.raises(f"{settings.url}: {failure.text}") from None


def _client(session: Any, settings: S3Settings) -> Any:
    if settings.ca_file is not None and not settings.ca_file.is_file():
        raise SecretNotFound(
            f"{settings.url}: the file of certificate authorities {settings.ca_file} does not exist: check "
            "spec.s3.caSecret"
        )
    if settings.proxy is None:
        client = _created(session, settings, {})
    else:
        url = settings.endpoint or _created(session, settings, {}).meta.endpoint_url
        client = _created(session, settings, proxies(settings.proxy, url, settings.ca_file))
    client.meta.events.register_last("before-call.s3", _without_expect)
    return client


def _created(session: Any, settings: S3Settings, through: Mapping[str, Any]) -> Any:
    """A client with these options of `proxies`."""
    addressing: Any = {
        "addressing_style": "path" if settings.path_style else "auto",
        "payload_signing_enabled": False,
        "use_accelerate_endpoint": settings.accelerate,
        "use_dualstack_endpoint": settings.dual_stack,
    }
    return session.create_client(
        "s3",
        region_name=settings.region,
        endpoint_url=settings.endpoint,
        verify=None if settings.ca_file is None else str(settings.ca_file),
        config=Config(
            connect_timeout=settings.connect_timeout_s,
            read_timeout=settings.read_timeout_s,
            max_pool_connections=settings.max_connections,
            tcp_keepalive=True,
            **through,
            user_agent=session.user_agent(),  # botocore would build its own twice for each request, a tenth of its work
            user_agent_extra=f"s3sink/{package_version()}",
            retries={"total_max_attempts": 1, "mode": "standard"},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            s3=addressing,
            **({"signature_version": UNSIGNED} if settings.anonymous else {}),
        ),
    )


def _without_expect(params: dict[str, Any], **_: object) -> None:
    params["headers"].pop("Expect", None)
