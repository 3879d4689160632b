"""The registration of each type of catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sink_job.api.enums import CatalogType
from sink_job.api.sections.tables_section import CatalogSpec
from sink_job.s3 import S3Settings
from sink_job.tables.catalog.access import CatalogAccess
from sink_job.tables.catalogs import IcebergCatalog
from sink_job.tables.hive_tables.choice import open_any, registration_in
from sink_job.tables.hive_tables.glue_partitions import GluePartitions
from sink_job.tables.hive_tables.hive_partitions import HivePartitions
from sink_job.tables.hive_tables.registration import PartitionRegistration
from sink_job.tables.plan import LedgerView
from sink_job.tables.registrations.topic_table import TopicTable
from sink_job.tables.successors.chain import ChainRegistration


@pytest.mark.parametrize(
    ("kind", "store", "registration"),
    [
        (CatalogType.SQL, IcebergCatalog, ChainRegistration),
        (CatalogType.GLUE, IcebergCatalog, ChainRegistration),
        (CatalogType.HIVE, IcebergCatalog, ChainRegistration),
        (CatalogType.GLUE_PARTITIONS, GluePartitions, PartitionRegistration),
        (CatalogType.HIVE_PARTITIONS, HivePartitions, PartitionRegistration),
    ],
)
def test_a_type_has_its_catalog_and_its_registration(
    kind: CatalogType, store: type[object], registration: type[object], tmp_path: Path
) -> None:
    hive = dict.fromkeys((CatalogType.HIVE, CatalogType.HIVE_PARTITIONS), "thrift://metastore:9083")
    uri = {CatalogType.SQL: f"sqlite:///{tmp_path}/c.db", **hive}.get(kind)
    spec = CatalogSpec(type=kind, uri=uri, region="eu-central-1", warehouse="s3://lake/tables")
    catalog = open_any(spec, S3Settings(bucket="archive"), CatalogAccess())
    assert isinstance(catalog, store)
    s3: Any = None
    target = TopicTable("lake.log", "log", (), LedgerView("log", "ledger", 1), (), lambda seconds: None)
    assert isinstance(registration_in(catalog, s3, "topics/_s3sink/default.log/", target), registration)
