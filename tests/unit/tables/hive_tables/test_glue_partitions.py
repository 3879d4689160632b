"""Partitions in AWS Glue: what its answers mean. tests/data/test_glue_partitions.py sends requests."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from sink_job.api.enums import CatalogType
from sink_job.api.errors import AccessDenied, TableIncompatible, TransientError
from sink_job.api.sections.tables_section import CatalogSpec
from sink_job.tables.catalog.access import CatalogAccess
from sink_job.tables.hive_tables.glue_partitions import GluePartitions
from sink_job.tables.hive_tables.store import PartitionedTable, TablePartition

TABLE = PartitionedTable("lake.log", "1", "s3://archive/topics/log/", ("day",), {"InputFormat": "x"})
PARTITION = TablePartition(("1",), "s3://archive/topics/log/day=1/")


class Answers:
    """AWS Glue with prepared answers."""

    def __init__(self) -> None:
        spec = CatalogSpec(type=CatalogType.GLUE_PARTITIONS, region="eu-central-1")
        self.store = GluePartitions(spec, CatalogAccess())
        client: Any = self.store._client
        self.stub = Stubber(client)
        self.stub.activate()

    def creates(self, code: str | None) -> None:
        error = {"PartitionValues": ["1"], "ErrorDetail": {"ErrorCode": code, "ErrorMessage": "why"}}
        storage = {"InputFormat": "x", "Location": PARTITION.location}
        self.stub.add_response(
            "batch_create_partition",
            {"Errors": [error]} if code else {},
            {
                "DatabaseName": "lake",
                "TableName": "log",
                "PartitionInputList": [{"Values": ["1"], "StorageDescriptor": storage}],
            },
        )

    def has(self, location: str) -> None:
        found = {"Values": ["1"], "StorageDescriptor": {"Location": location}}
        self.stub.add_response("batch_get_partition", {"Partitions": [found]})


@pytest.fixture
def aws() -> Answers:
    return Answers()


def test_a_partition_has_the_storage_of_the_table_at_its_own_location(aws: Answers) -> None:
    aws.creates(None)
    aws.store.add(TABLE, [PARTITION])
    aws.stub.assert_no_pending_responses()


def test_a_partition_that_exists_is_not_added_again_if_it_has_the_location(aws: Answers) -> None:
    aws.creates("AlreadyExistsException")
    aws.has("s3://archive/topics/log/day=1")
    aws.store.add(TABLE, [PARTITION])
    aws.creates("AlreadyExistsException")
    aws.has("s3://other/day=1")
    with pytest.raises(TableIncompatible, match="exists with the location s3://other/day=1"):
        aws.store.add(TABLE, [PARTITION])


def test_a_partition_that_was_not_added_is_an_error(aws: Answers) -> None:
    aws.creates("InternalServiceException")
    with pytest.raises(TransientError, match="has not added the partition 1: InternalServiceException: why"):
        aws.store.add(TABLE, [PARTITION])


def test_errors_name_the_permissions_and_others_are_transient(aws: Answers) -> None:
    for operation in ("get_table", "batch_create_partition"):
        aws.stub.add_client_error(operation, "AccessDeniedException")
    with pytest.raises(AccessDenied, match="glue:GetTable, BatchCreatePartition and BatchGetPartition"):
        aws.store.table("lake.log")
    with pytest.raises(AccessDenied, match="AWS Glue: "):
        aws.store.add(TABLE, [PARTITION])
    aws.stub.add_client_error("get_table", "ThrottlingException")
    with pytest.raises(TransientError) as caught:
        aws.store.table("lake.log")
    assert isinstance(caught.value.__cause__, ClientError)


def test_a_table_that_does_not_exist_is_none(aws: Answers) -> None:
    aws.stub.add_client_error("get_table", "EntityNotFoundException")
    assert aws.store.table("lake.log") is None
