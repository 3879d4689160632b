"""One client a process and bucket: `connect` hands out the same `S3` for equal settings.

Building a client takes a tenth of a second and a connection pool is worth keeping, so tasks of a Python worker share
one. A forked process makes its own: connections cannot be shared.
"""

import os
import threading

from sink_job.s3.multipart import MultipartCalls
from sink_job.s3.objects import ObjectCalls
from sink_job.s3.request_metrics import RequestMetrics
from sink_job.s3.settings import S3Settings
from sink_job.s3.transport import Transport

__all__ = ["S3Client", "connect"]


class S3Client(ObjectCalls, MultipartCalls):
    """The calls the protocol needs on one bucket, each tried again with growing, jittered pauses. Thread-safe."""

    def __init__(self, settings: S3Settings) -> None:
        """Raises ConfigurationError when there are no credentials or no readable authorities; asks the store
        nothing."""
        self.settings = settings
        self._transport = Transport(settings)

    def __repr__(self) -> str:
        return f"S3({self.url})"

    @property
    def bucket(self) -> str:
        """The bucket's name."""
        return self.settings.bucket

    @property
    def url(self) -> str:
        """`s3://<bucket>`."""
        return self.settings.url

    @property
    def meter(self) -> RequestMetrics:
        """What this client has asked so far."""
        return self._transport.meter

    def cancel_retries(self) -> None:
        """Ends pauses between tries now and from now on: for a process that shuts down."""
        self._transport.cancel_retries()

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()


_lock = threading.Lock()
_clients: dict[tuple[int, S3Settings], S3Client] = {}


def connect(settings: S3Settings) -> S3Client:
    """This process's client for `settings`. Raises ConfigurationError; asks the store nothing."""
    with _lock:
        ours = os.getpid(), settings
        if ours not in _clients:
            _clients[ours] = S3Client(settings)
        return _clients[ours]
