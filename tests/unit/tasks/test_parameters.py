"""The parameters of the tasks of a round, as Spark sends them to its workers."""

from __future__ import annotations

import pickle
from pathlib import Path

from sink_job.api.enums import OnNullValue
from sink_job.ledger.schemas.schema_table import KnownSchemas
from sink_job.s3 import S3Settings
from sink_job.tasks.parameters import RoundParameters


def test_a_worker_gets_the_same_parameters_and_no_secret(tmp_path: Path) -> None:
    (tmp_path / "AWS_SECRET_ACCESS_KEY").write_text("hunter2")
    given = RoundParameters(
        s3=S3Settings(bucket="archive", region="eu-central-1", credentials_dir=tmp_path),
        root="topics/_s3sink/flights/",
        settings_json="{}",
        settings_record=1,
        tolerant=False,
        on_null=OnNullValue.FAIL,
        epoch=1,
        round=2,
        now=3,
        budget=4,
        threads=5,
        part_buffers=6,
        schemas=KnownSchemas({"flights": frozenset({"7"})}, {"flights": {"8": "unknown"}}),
    )
    sent = pickle.dumps(given)
    assert pickle.loads(sent) == given
    assert b"hunter2" not in sent
