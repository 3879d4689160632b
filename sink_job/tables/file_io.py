"""The metadata files of tables, read and written with the S3 client of the sink.

PyIceberg makes a `FileIO` from the properties of a catalog, which are texts. So a client is registered under a name,
which is one of them. Files of metadata are small: each is one put or one get.
"""

from __future__ import annotations

import gzip
import io
import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Final, Self

from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.typedef import EMPTY_DICT, Properties

from sink_job.api.errors import ConfigurationError, TableNotRegistered
from sink_job.s3 import NotFound, PreconditionFailed, S3Client, S3Settings, connect

SCHEMES: Final = ("s3", "s3a", "s3n")
CONNECTION: Final = "s3sink.connection"
"""The property with the name of the client."""

MAX_METADATA: Final = 32 << 20
"""Maximum bytes of a file of metadata. It takes about 20 times as much memory when it is read."""

_MANIFEST: Final = ".avro"
"""The end of the names of manifests and their lists."""
_COMPRESSED: Final = ".gz.metadata.json"
"""The end of the names of metadata that PyIceberg decompresses."""
_STEP: Final = 1 << 20

ClientOf = Callable[[str], S3Client]
"""The client for a bucket."""

_clients: Final[dict[str, ClientOf]] = {}


def file_properties(client_of: ClientOf) -> dict[str, str]:
    """The properties of a catalog whose tables have their metadata in buckets of `client_of`."""
    name = uuid.uuid4().hex
    _clients[name] = client_of
    return {"py-io-impl": f"{__name__}.{SinkFileIO.__name__}", CONNECTION: name}


def clients_like(settings: S3Settings) -> ClientOf:
    """Clients with the settings of the sink, also for other buckets. Raises ConfigurationError for settings that
    metadata of tables cannot have."""
    if settings.role is not None:
        raise ConfigurationError(
            "spec.s3.assumeRole is set: its session may use the prefixes of the sink alone, not those of tables. "
            "Register with credentials that may use both"
        )
    if settings.customer_keys:
        raise ConfigurationError(
            "spec.s3.encryption.customerKey is set: no reader of a table has this key, so the objects cannot be in one"
        )

    def client_of(bucket: str) -> S3Client:
        is_own = bucket == settings.bucket
        return connect(settings if is_own else replace(settings, bucket=bucket, every_request=(), ledger=None))

    return client_of


class SinkFileIO(FileIO):
    """Files in buckets. Thread-safe."""

    def __init__(self, properties: Properties = EMPTY_DICT) -> None:
        super().__init__(properties)
        self._client_of = _clients[str(properties[CONNECTION])]

    def new_input(self, location: str) -> InputFile:
        return _File(location, *self.place(location))

    def new_output(self, location: str) -> OutputFile:
        return _NewFile(location, *self.place(location))

    def delete(self, location: str | InputFile | OutputFile) -> None:
        client, key = self.place(location if isinstance(location, str) else location.location)
        client.delete([key])

    def place(self, location: str) -> tuple[S3Client, str]:
        """The client and the key of a file. Raises ConfigurationError for one that is not in a bucket of S3."""
        scheme, _, rest = location.partition("://")
        bucket, _, key = rest.partition("/")
        if scheme not in SCHEMES or not bucket or not key:
            raise ConfigurationError(
                f"{location} is not in a bucket of S3: tables with metadata elsewhere are not supported"
            )
        return self._client_of(bucket), key


class _File(InputFile):
    def __init__(self, location: str, client: S3Client, key: str) -> None:
        super().__init__(location)
        self._client = client
        self._key = key

    def __len__(self) -> int:
        head = self._client.head(self._key)
        if head is None:
            raise FileNotFoundError(self.location)
        return head.size

    def exists(self) -> bool:
        return self._client.head(self._key) is not None

    def open(self, seekable: bool = True) -> io.BytesIO:
        """Raises TableNotRegistered for metadata of a table that would not fit in the memory of a driver."""
        is_metadata = not self.location.endswith(_MANIFEST)  # catalogs may give it any name
        if is_metadata and len(self) > MAX_METADATA:
            raise self._too_large(f"{len(self):,} bytes,")
        try:
            content = self._client.get(self._key)
        except NotFound as error:
            raise FileNotFoundError(self.location) from error
        if self.location.endswith(_COMPRESSED) and _is_larger(content, MAX_METADATA):
            raise self._too_large(f"{len(content):,} bytes and decompressed")
        return io.BytesIO(content)

    def _too_large(self, what: str) -> TableNotRegistered:
        return TableNotRegistered(
            f"{self.location} has {what} more than {MAX_METADATA:,}: expire snapshots of the table "
            "(table.maintenance.expire_snapshots() of PyIceberg), then register again"
        )


def _is_larger(compressed: bytes, limit: int) -> bool:
    """Whether the content of a file of gzip has more than `limit` bytes. Reads no more than that."""
    with gzip.GzipFile(fileobj=io.BytesIO(compressed)) as content:
        while step := content.read(_STEP):
            limit -= len(step)
            if limit < 0:
                return True
    return False


class _NewFile(OutputFile):
    def __init__(self, location: str, client: S3Client, key: str) -> None:
        super().__init__(location)
        self._client = client
        self._key = key

    def __len__(self) -> int:
        return len(self.to_input_file())

    def exists(self) -> bool:
        return self._client.head(self._key) is not None

    def to_input_file(self) -> InputFile:
        return _File(self.location, self._client, self._key)

    def create(self, overwrite: bool = False) -> _WrittenFile:
        return _WrittenFile(self, overwrite=overwrite)

    def put(self, content: bytes, *, overwrite: bool) -> None:
        """Writes the file. Raises FileExistsError without `overwrite`."""
        try:
            self._client.put(self._key, content, only_if_absent=not overwrite)
        except PreconditionFailed as error:
            raise FileExistsError(self.location) from error


class _WrittenFile(io.BytesIO):
    """A file that is written when it is closed, and not after an error."""

    def __init__(self, file: _NewFile, *, overwrite: bool) -> None:
        super().__init__()
        self._file = file
        self._overwrite = overwrite
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            super().close()

    def close(self) -> None:
        with self._lock:
            if self.closed:
                return
            content = self.getvalue()
            super().close()
        self._file.put(content, overwrite=self._overwrite)
