"""DuckDB with its extension for Iceberg, which reads tables independently of PyIceberg.

The extensions are packages for one version of DuckDB, and not for that of the tests. So they are in a folder of the
cache, and each query is a process. `tools/iceberg_reader.lock` has their hashes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from devtools.processes import ServerFailedError
from devtools.s3 import ACCESS_KEY, REGION, SECRET_KEY
from sink_job.engine.cache import cache_dir

_LOCK = Path(__file__).resolve().parents[1] / "tools" / "iceberg_reader.lock"
_TIMEOUT_S = 300
_PROGRAM = """
import glob, importlib, json, os, sys
import duckdb

given = json.load(sys.stdin)
connection = duckdb.connect(config={"allow_unsigned_extensions": "true", "threads": 1})
for name in ("avro", "httpfs", "iceberg"):
    folder = os.path.dirname(importlib.import_module(f"duckdb_extension_{name}").__file__)
    (path,) = glob.glob(f"{folder}/extensions/*/*.duckdb_extension")
    connection.load_extension(path)
connection.execute("SET TimeZone = 'UTC'")
connection.execute("SET enable_progress_bar = false")  # it is on standard output, of slow queries
connection.execute(given["secret"])
connection.execute(f"CREATE VIEW t AS SELECT * FROM iceberg_scan('{given['metadata']}')")
exec(given["script"])
print(json.dumps(result, default=str))
"""


def packages() -> Path:
    """The folder of the packages, for PYTHONPATH. Raises ServerFailedError where pip cannot install them."""
    digest = hashlib.sha256(f"{sys.version_info[:2]}".encode() + _LOCK.read_bytes()).hexdigest()[:12]
    folder = cache_dir() / f"iceberg-reader-{digest}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="iceberg-reader-") as work:
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
            made = Path(work, "made")
            words = [*pip, "--require-hashes", "--target", str(made), "-r", str(_LOCK)]
            done = subprocess.run(words, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
            if done.returncode:
                raise ServerFailedError(f"pip cannot install {_LOCK.name}:\n{done.stderr[-4000:]}")
            with contextlib.suppress(OSError):  # another process was first; its copy is the same
                made.rename(folder)
    return folder


def read_table(endpoint: str, metadata: str, script: str) -> Any:
    """What the Python `script` assigns to `result`, as JSON. It has a `connection` of DuckDB with the table as the view
    `t`. `metadata` is the location of the table's metadata file, `endpoint` the S3 server of the tests."""
    secret = (
        f"CREATE SECRET s (TYPE s3, KEY_ID '{ACCESS_KEY}', SECRET '{SECRET_KEY}', REGION '{REGION}', "
        f"ENDPOINT '{endpoint.split('//')[1]}', URL_STYLE 'path', USE_SSL {str(endpoint.startswith('https')).lower()})"
    )
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        input=json.dumps({"secret": secret, "metadata": metadata, "script": script}),
        env={**os.environ, "PYTHONPATH": str(packages())},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise ServerFailedError(f"DuckDB cannot read {metadata}:\n{done.stderr[-4000:]}")
    return json.loads(done.stdout)
