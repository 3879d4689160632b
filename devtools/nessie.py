"""Nessie, a REST catalog of Iceberg with its tables in branches of its own: a second server beside Iceberg's.

Maven downloads it into the cache, 245 MB. It needs the Java of Apicurio.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from devtools.go_tool import locked
from devtools.processes import LOOPBACK, Process, ServerFailedError, free_ports, killed_at_end, wait_until
from devtools.s3 import ACCESS_KEY, REGION, SECRET_KEY
from devtools.schema_registry.apicurio import java
from sink_job.engine.cache import cache_dir

VERSION: Final = "0.99.0"
_ARTIFACT: Final = f"org.projectnessie.nessie:nessie-quarkus:{VERSION}:jar:runner"
_SHA256: Final = "ce9fa33e2878bf5ea3981876b9e6204cabc0362b3dd82326b10e47271a78c417"
_START_SECONDS: Final = 120
_DOWNLOAD_SECONDS: Final = 600
_WAREHOUSE: Final = "lake"


@contextlib.contextmanager
def nessie(folder: Path, endpoint: str, location: str) -> Iterator[str]:
    """The URL of a catalog whose state is lost when it ends. `folder` is for its log, `endpoint` the S3 server, and
    `location` that of tables. Raises ServerFailedError."""
    port, management_port = free_ports(2)
    s3 = "nessie.catalog.service.s3.default-options"
    settings = {
        "quarkus.http.host": LOOPBACK,
        "quarkus.http.port": port,
        "quarkus.management.host": LOOPBACK,
        "quarkus.management.port": management_port,
        "nessie.version.store.type": "IN_MEMORY",
        "nessie.catalog.default-warehouse": _WAREHOUSE,
        f"nessie.catalog.warehouses.{_WAREHOUSE}.location": location,
        f"{s3}.endpoint": endpoint,
        f"{s3}.path-style-access": "true",
        f"{s3}.region": REGION,
        f"{s3}.access-key": "urn:nessie-secret:quarkus:tests.s3",
        "tests.s3.name": ACCESS_KEY,
        "tests.s3.secret": SECRET_KEY,
    }
    options = ["-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    options += [f"-D{name}={value}" for name, value in settings.items()]
    url = f"http://{LOOPBACK}:{port}/iceberg"
    command: list[str | Path] = [java(), *options, "-jar", application()]
    with killed_at_end(Process(command, log=folder / "nessie.log", cwd=folder)) as process:
        wait_until(lambda: _answers(url), "Nessie", seconds=_START_SECONDS, unless=process.failed)
        yield url


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/v1/config", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def application() -> Path:
    """The jar of the server: from the cache, else downloaded. Raises ServerFailedError if that fails."""
    path = cache_dir() / f"nessie-{VERSION}-{_SHA256[:12]}.jar"
    with locked(cache_dir()):
        if not path.exists():
            with tempfile.TemporaryDirectory(dir=cache_dir(), prefix="nessie-") as work:
                _download(Path(work)).rename(path)
    return path


def _download(work: Path) -> Path:
    maven = shutil.which("mvn")
    if not maven:
        raise ServerFailedError("mvn is not on PATH, and it downloads Nessie: install Maven")
    command = [maven, "-q", "-B", "dependency:copy", f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={work}"]
    command.append(f"-Dmaven.repo.local={work}/repository")  # no second copy stays on the machine
    done = subprocess.run(command, capture_output=True, text=True, timeout=_DOWNLOAD_SECONDS, check=False)
    found = next(work.glob("*.jar"), None)
    if done.returncode or found is None:
        raise ServerFailedError(f"mvn has not fetched {_ARTIFACT}:\n{done.stdout[-2000:]}")
    if hashlib.sha256(found.read_bytes()).hexdigest() != _SHA256:
        raise ServerFailedError(f"{_ARTIFACT} has another SHA-256 than {_SHA256}")
    return found
