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
from sink_job.registry.clients import confluent
from sink_job.s3 import S3Client, S3Settings
from tests.support import schema_log, sink_fixture

__all__ = ["babel", "confluent", "schema_log", "sink_fixture"]

with tempfile.TemporaryDirectory() as folder:
    keys = credentials_secret(Path(folder))
    S3Client(S3Settings(bucket="none", region=REGION, endpoint="http://127.0.0.1:9", credentials_dir=keys)).close()

pa.array([0])
