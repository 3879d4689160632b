"""S3 servers of this machine: VersityGW, which keeps to S3's documents, and moto where there is no Go.

Both are processes over a folder, with one key pair; a client of either comes from `S3Server.client`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from devtools.certificates import Certificate
from devtools.processes import LOOPBACK, Process, ServerFailedError, accepts_connections, free_ports, wait_until
from devtools.versitygw import versitygw_binary

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

ACCESS_KEY = "test-access-key"
SECRET_KEY = "test-secret-key"
REGION = "us-east-1"
_START_SECONDS = 30


class S3Server(ABC):
    """A server over `directory`: data and port stay through stop, kill and start. It listens at `host`."""

    def __init__(
        self,
        directory: Path,
        *,
        certificate: Certificate | None = None,
        with_parent: bool = True,
        host: str = LOOPBACK,
    ) -> None:
        self.directory = directory
        self.host = host
        self.port = free_ports(1)[0]
        self.certificate = certificate
        self.process: Process | None = None
        self._with_parent = with_parent

    @property
    def endpoint(self) -> str:
        scheme = "https" if self.certificate else "http"
        return f"{scheme}://{self.host}:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables from which AWS's default chain takes this server's key pair and region."""
        return credentials_environment()

    def client(self, endpoint: str | None = None) -> S3Client:
        """A client with the right keys; `endpoint` is another way to the same server (a proxy's)."""
        return s3_client(endpoint or self.endpoint, verify=self.certificate.certificate if self.certificate else None)

    def start(self) -> None:
        """Starts the server and returns when it accepts connections; raises `ServerFailedError` otherwise."""
        process = Process(
            self.command(), log=self.directory / "s3.log", cwd=self.directory, with_parent=self._with_parent
        )
        self.process = process
        try:
            wait_until(
                lambda: accepts_connections(self.port, self.host),
                "S3 server",
                seconds=_START_SECONDS,
                unless=process.failed,
            )
        except ServerFailedError:
            process.kill()
            raise

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            self.process = None

    def kill(self) -> None:
        if self.process:
            self.process.kill()
            self.process = None

    def restart(self) -> None:
        """Stop and start, on the same data and port."""
        self.stop()
        self.start()

    @abstractmethod
    def command(self) -> list[str | Path]: ...


class VersityGW(S3Server):
    """VersityGW over a folder of files; buckets are the folders in `directory`/data."""

    def command(self) -> list[str | Path]:
        data = self.directory / "data"
        data.mkdir(exist_ok=True)
        words: list[str | Path] = [versitygw_binary(), "--access", ACCESS_KEY, "--secret", SECRET_KEY]
        words += ["--region", REGION, "--port", f"{self.host}:{self.port}", "--keep-alive", "--quiet"]
        if self.certificate:
            words += ["--cert", self.certificate.certificate, "--key", self.certificate.key]
        words.append("posix")
        if not _has_extended_attributes(data):
            sidecar = self.directory / "metadata"
            sidecar.mkdir(exist_ok=True)
            words += ["--sidecar", sidecar]
        return [*words, data]


class Moto(S3Server):
    """moto's server; it keeps everything in memory and is lax about checksums: good enough for a demo."""

    def command(self) -> list[str | Path]:
        words: list[str | Path] = [sys.executable, "-m", "moto.server", "-H", self.host, "-p", str(self.port)]
        if self.certificate:
            words += ["-c", self.certificate.certificate, "-k", self.certificate.key]
        return words


@contextlib.contextmanager
def s3_server(
    kind: type[S3Server] = VersityGW, *, certificate: Certificate | None = None, host: str = LOOPBACK
) -> Iterator[S3Server]:
    """A running server with data of its own in a temporary folder; at the end it is killed and the folder removed."""
    with tempfile.TemporaryDirectory(prefix="s3sink-s3-", ignore_cleanup_errors=True) as name:
        server = kind(Path(name), certificate=certificate, host=host)
        try:
            server.start()
            yield server
        finally:
            server.kill()


def s3_client(endpoint: str, *, verify: Path | None = None, attempts: int = 1) -> S3Client:
    """A boto3 client for a server of this module; `attempts` above 1 enables boto3's own retries."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        verify=str(verify) if verify else None,
        config=Config(
            s3={"addressing_style": "path"},
            retries={"total_max_attempts": attempts},
            read_timeout=60,
            connect_timeout=5,
        ),
    )


def credentials_environment() -> dict[str, str]:
    """The environment in which AWS's default chain finds the key pair, and nothing else."""
    return {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }


def credentials_secret(folder: Path, *, access_key: str = ACCESS_KEY, secret_key: str = SECRET_KEY) -> Path:
    """The same pair as a mounted Secret: `folder` with one file for each key."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "AWS_ACCESS_KEY_ID").write_text(access_key)
    (folder / "AWS_SECRET_ACCESS_KEY").write_text(secret_key)
    return folder


def _has_extended_attributes(folder: Path) -> bool:
    if not hasattr(os, "setxattr"):
        return False
    try:
        os.setxattr(folder, "user.s3sink", b"1")
    except OSError:
        return False
    return True
