"""The S3 client. `connect` returns the same client for equal settings within a process.

Creation of a client takes a tenth of a second, and its connection pool is worth reuse. So the tasks of a Python worker
share one client. A forked process creates its own, because connections cannot be shared between processes.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sink_job.s3.ledger_transport import LedgerTransport
from sink_job.s3.multipart import MultipartCalls
from sink_job.s3.objects import ObjectCalls
from sink_job.s3.request_metrics import RequestMetrics
from sink_job.s3.settings import S3Settings
from sink_job.s3.tagging import TaggingCalls
from sink_job.s3.transport import Transport
from sink_job.s3.versions import VersionCalls

__all__ = ["S3Client", "connect", "connected_by"]


class S3Client(ObjectCalls, VersionCalls, MultipartCalls, TaggingCalls):
    """The requests that the protocol needs, for one bucket, or with `spec.s3.ledger` for two: the key decides
    (`sink_job.s3.ledger_transport`). Each is retried with exponential backoff and jitter. Thread-safe."""

    _ledger: "S3Client | None" = None

    def __init__(self, settings: S3Settings) -> None:
        """Sends no request. Raises ConfigurationError if there are no credentials, or no readable file of certificate
        authorities."""
        self.settings = settings
        place = settings.ledger
        if place is None:
            self._transport = Transport(settings)
        else:
            self._ledger = S3Client(place.settings)
            self._transport = LedgerTransport(settings, place.folder, self._ledger._transport)

    def __repr__(self) -> str:
        return f"S3Client({self.url})"

    @property
    def bucket(self) -> str:
        """The bucket's name."""
        return self.settings.bucket

    @property
    def url(self) -> str:
        """`s3://<bucket>`."""
        return self.settings.url

    def url_of(self, key: str) -> str:
        """`s3://<bucket>/<key>`, with the bucket in which this key is."""
        return self.settings.url_of(key)

    @property
    def of_ledger(self) -> "S3Client":
        """The client of the bucket with ledger and staging: this one, unless they are in another place."""
        return self._ledger or self

    def check_access(self) -> None:
        """Checks that the bucket, and that of the ledger, exist and can be listed. Raises ConfigurationError with the
        reason if not."""
        super().check_access()
        if self._ledger is not None:
            self._ledger.check_access()

    @property
    def meter(self) -> RequestMetrics:
        """The counters of this client's requests."""
        return self._transport.meter

    def cancel_retries(self) -> None:
        """Cancels the retries in progress and all later ones. For the shutdown of the process."""
        self._transport.cancel_retries()

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()


_lock = threading.Lock()
_clients: dict[tuple[int, S3Settings], S3Client] = {}


def connect(settings: S3Settings) -> S3Client:
    """This process's client for `settings`. Sends no request. Raises ConfigurationError."""
    with _lock:
        owner = os.getpid(), settings
        if owner not in _clients:
            _clients[owner] = S3Client(settings)
        return _clients[owner]


@contextmanager
def connected_by(client: S3Client) -> Iterator[None]:
    """In the context `connect` returns `client` for its settings: `s3sink plan` replaces the bucket by one in
    memory."""
    owner = os.getpid(), client.settings
    with _lock:
        _clients[owner] = client
    try:
        yield
    finally:
        with _lock:
            _clients.pop(owner, None)
