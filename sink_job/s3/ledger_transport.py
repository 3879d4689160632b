"""The requests of a sink whose ledger and staging are in another place (`spec.s3.ledger`): keys below the folder of
ledgers are in the ledger's bucket, all others in the objects' bucket.

The key alone decides, so that no caller can send a request to the wrong bucket: uploads, copies and deletions of
dead-letter objects, which may be in either bucket, need no case of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from sink_job.s3.request_body import ChunkedBody
from sink_job.s3.settings import S3Settings
from sink_job.s3.transport import Transport

_T = TypeVar("_T")


class LedgerTransport(Transport):
    """The transport of the objects' bucket, which passes the requests for the ledger on to `ledger`."""

    def __init__(self, settings: S3Settings, folder: str, ledger: Transport) -> None:
        """`folder`: what the keys of ledgers begin with."""
        super().__init__(settings)
        self._folder = folder
        self._ledger = ledger
        ledger.meter = self.meter

    def for_key(self, key: str) -> Transport:
        return self._ledger if key.startswith(self._folder) else self

    def call(
        self,
        operation: str,
        *,
        key: str | None = None,
        body: ChunkedBody | None = None,
        expects: str | None = None,
        **params: object,
    ) -> Mapping[str, Any]:
        if self._is_of_ledger(key, params):
            return self._ledger.call(operation, key=key, body=body, expects=expects, **params)
        return super().call(operation, key=key, body=body, expects=expects, **params)

    def once(
        self, operation: str, *, key: str | None, body: ChunkedBody | None = None, again: bool, **params: object
    ) -> Mapping[str, Any]:
        if self._is_of_ledger(key, params):
            return self._ledger.once(operation, key=key, body=body, again=again, **params)
        return super().once(operation, key=key, body=body, again=again, **params)

    def persist(self, operation: str, key: str | None, attempt: Callable[[bool], _T]) -> _T:
        if self._is_of_ledger(key, {}):
            return self._ledger.persist(operation, key, attempt)
        return super().persist(operation, key, attempt)

    def _is_of_ledger(self, key: str | None, params: Mapping[str, object]) -> bool:
        name = params.get("Prefix") if key is None else key
        return isinstance(name, str) and name.startswith(self._folder)

    @property
    def date(self) -> tuple[str, float] | None:
        found = [each for each in (super().date, self._ledger.date) if each is not None]
        return min(found, key=lambda each: each[1], default=None)

    def cancel_retries(self) -> None:
        super().cancel_retries()
        self._ledger.cancel_retries()

    def close(self) -> None:
        super().close()
        self._ledger.close()
