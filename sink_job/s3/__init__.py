"""The object store: one S3 client per process, the requests that the protocol needs, and typed errors for their
outcomes.

Runs in every process of a sink: driver, commands and Spark's Python workers.
"""

from sink_job.engine.retry import RetryPolicy
from sink_job.s3.client import S3Client, connect
from sink_job.s3.errors import (
    ChecksumMismatch,
    Conflict,
    EntityTooSmall,
    InvalidPart,
    NoSuchUpload,
    NotFound,
    PreconditionFailed,
    S3Outcome,
)
from sink_job.s3.multipart import Upload, UploadedPart
from sink_job.s3.objects import Head, Listed, PutResult
from sink_job.s3.request_metrics import RequestMetrics, Usage
from sink_job.s3.session import load_service_descriptions
from sink_job.s3.settings import S3Settings
from sink_job.s3.start_check import StoreAdvice, check_objects_bucket, check_store
from sink_job.s3.store_probe import (
    has_default_retention,
    lifecycle_warning,
    probe,
    probe_encryption,
    probe_object_lock,
    probe_replacement,
)
from sink_job.s3.versions import Version

__all__ = [
    "ChecksumMismatch",
    "Conflict",
    "EntityTooSmall",
    "Head",
    "InvalidPart",
    "Listed",
    "NoSuchUpload",
    "NotFound",
    "PreconditionFailed",
    "PutResult",
    "RequestMetrics",
    "RetryPolicy",
    "S3Client",
    "S3Outcome",
    "S3Settings",
    "StoreAdvice",
    "Upload",
    "UploadedPart",
    "Usage",
    "Version",
    "check_objects_bucket",
    "check_store",
    "connect",
    "has_default_retention",
    "lifecycle_warning",
    "load_service_descriptions",
    "probe",
    "probe_encryption",
    "probe_object_lock",
    "probe_replacement",
]
