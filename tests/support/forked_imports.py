"""What processes of `tests.support.forked` have in memory at their start. Only their parent imports this module.

Besides the imports, botocore's descriptions of S3 are parsed. PyArrow imports pandas at the first list it converts,
and the check of a locale imports Babel. In a process that is soon killed these take much of the time.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
from babel import core as babel

from devtools.s3 import REGION, credentials_secret
from sink_job.cli import main, verify_output
from sink_job.driver import run, standalone_admin
from sink_job.registry.clients import confluent
from sink_job.s3 import S3Client, S3Settings
from sink_job.spark import engine, session
from sink_job.tables import registration
from sink_job.verify import compare_job
from tests.support import schema_log, sink_fixture

__all__ = [
    "babel",
    "compare_job",
    "confluent",
    "engine",
    "main",
    "registration",
    "run",
    "schema_log",
    "session",
    "sink_fixture",
    "standalone_admin",
    "verify_output",
]

with tempfile.TemporaryDirectory() as folder:
    keys = credentials_secret(Path(folder))
    S3Client(S3Settings(bucket="none", region=REGION, endpoint="http://127.0.0.1:9", credentials_dir=keys)).close()

pa.array([0])
