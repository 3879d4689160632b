"""A store with scripted answers, for situations that a real store does not produce on demand."""

import dataclasses
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import botocore.loaders
import pytest

from sink_job.s3 import RetryPolicy, S3Client, S3Settings, UploadedPart
from sink_job.s3.checksums import crc64nvme


@dataclass(frozen=True)
class ReceivedRequest:
    """One request as the store received it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Reply:
    """One answer. `lost`: the connection is closed without an answer. `after`: the answer waits for this event."""

    status: int = 200
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    lost: bool = False
    after: Event | None = None


def error_reply(status: int, code: str, **headers: str) -> Reply:
    """An error in S3's format."""
    error = f"<Error><Code>{code}</Code><Message>scripted by the test</Message></Error>"
    return Reply(status, f'<?xml version="1.0" encoding="UTF-8"?>\n{error}', headers)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Ignores a client that has closed its connection."""


class ScriptedStore:
    """Answers requests in order with `replies`, and later ones with `otherwise`."""

    def __init__(self) -> None:
        self.replies: deque[Reply] = deque()
        self.otherwise = Reply(headers={"ETag": '"e"'})
        self.received: list[ReceivedRequest] = []
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def next_reply(self) -> Reply:
        return self.replies.popleft() if self.replies else self.otherwise

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(store: ScriptedStore) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            store.received.append(ReceivedRequest(self.command, self.path, headers, body))
            reply = store.next_reply()
            if reply.after is not None:
                reply.after.wait(30)
            if reply.lost:
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in ({"Content-Length": str(len(reply.body))} | reply.headers).items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(reply.body.encode())

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@pytest.fixture(scope="session", autouse=True)
def _one_loader() -> Iterator[None]:
    """Parses botocore's description of S3 once. Each client would parse it again, which takes longer than a test."""
    loader = botocore.loaders.create_loader()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("botocore.session.create_loader", lambda *_: loader)
        yield


@pytest.fixture
def store() -> Iterator[ScriptedStore]:
    scripted = ScriptedStore()
    yield scripted
    scripted.stop()


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Credentials in the layout of a mounted Secret."""
    directory = tmp_path / "keys"
    directory.mkdir()
    (directory / "AWS_ACCESS_KEY_ID").write_text("the-access-key")
    (directory / "AWS_SECRET_ACCESS_KEY").write_text("the-secret-key")
    return directory


SLOW_DOWN = error_reply(503, "SlowDown")
LOST = Reply(lost=True)
COMPLETED = Reply(body="<CompleteMultipartUploadResult><ETag>&quot;e-1&quot;</ETag></CompleteMultipartUploadResult>")
PART = UploadedPart(number=1, etag='"e"', crc=crc64nvme(b"part"), size=4)

PATIENT = RetryPolicy(max_elapsed_s=60, first_s=0.002, cap_s=0.02, conflicts=3)
IMPATIENT = dataclasses.replace(PATIENT, max_elapsed_s=0.1)


@pytest.fixture
def settings(store: ScriptedStore, secret: Path) -> S3Settings:
    return S3Settings(
        bucket="bucket",
        region="us-east-1",
        endpoint=store.endpoint,
        path_style=True,
        credentials_dir=secret,
        read_timeout_s=5,
        retry=PATIENT,
    )


@pytest.fixture
def s3(settings: S3Settings) -> Iterator[S3Client]:
    """A client with a retry time that is sufficient on a slow machine."""
    client = S3Client(settings)
    yield client
    client.close()


@pytest.fixture
def impatient(settings: S3Settings) -> Iterator[S3Client]:
    """A client with a retry time of a tenth of a second."""
    client = S3Client(dataclasses.replace(settings, retry=IMPATIENT))
    yield client
    client.close()
