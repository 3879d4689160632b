"""The schema of the status, generated from `status_model`. Every section is closed: unknown fields are pruned."""

from __future__ import annotations

from typing import Any, Final

from s3sink_operator.crd.schema import structural
from s3sink_operator.status_model import S3SinkStatus

STATUS: Final[dict[str, Any]] = structural(S3SinkStatus.model_json_schema(), path="status")
