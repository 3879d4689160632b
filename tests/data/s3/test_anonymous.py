"""Requests without a signature, to a bucket that its policy opens."""

from __future__ import annotations

import dataclasses
import json

import pytest

from devtools.s3 import Moto, VersityGW, s3_server
from sink_job.api.errors import AccessDenied
from sink_job.s3 import S3Client, S3Settings

pytestmark = pytest.mark.data


def test_an_open_bucket_is_read_without_a_signature_and_a_closed_one_is_not(
    gateway: VersityGW, settings: S3Settings
) -> None:
    server = gateway.client()
    server.create_bucket(Bucket="open-to-all")
    where = "arn:aws:s3:::open-to-all"
    statement = {"Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": [where, f"{where}/*"]}
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    server.put_bucket_policy(Bucket="open-to-all", Policy=json.dumps(policy))
    server.put_object(Bucket="open-to-all", Key="a", Body=b"content")
    unsigned = dataclasses.replace(settings, credentials_dir=None, anonymous=True)
    s3 = S3Client(dataclasses.replace(unsigned, bucket="open-to-all"))
    assert s3.get("a") == b"content"
    s3.close()
    closed = S3Client(unsigned)
    with pytest.raises(AccessDenied):
        closed.check_access()
    closed.close()


def test_a_store_without_anonymous_uploads_denies_access_as_aws_does(gateway: VersityGW, settings: S3Settings) -> None:
    s3 = S3Client(dataclasses.replace(settings, bucket="open-to-all", credentials_dir=None, anonymous=True))
    with pytest.raises(AccessDenied, match="Anonymous users cannot initiate multipart uploads"):
        s3.create_upload("a")
    s3.close()


def test_a_store_with_anonymous_uploads_can_be_used(settings: S3Settings) -> None:
    with s3_server(Moto) as server:
        server.client().create_bucket(Bucket="archive")
        s3 = S3Client(dataclasses.replace(settings, endpoint=server.endpoint, credentials_dir=None, anonymous=True))
        upload = s3.create_upload("a")
        s3.complete("a", upload, [s3.upload_part("a", upload, 1, b"content")])
        assert s3.get("a") == b"content"
        s3.close()
