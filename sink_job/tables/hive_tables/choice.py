"""The registration that the type of a catalog needs."""

from __future__ import annotations

from typing import Protocol

from sink_job.api.enums import CatalogType
from sink_job.api.sections.tables_section import CatalogSpec
from sink_job.s3 import S3Client, S3Settings
from sink_job.tables.catalog.access import CatalogAccess
from sink_job.tables.catalogs import TableCatalog, open_catalog
from sink_job.tables.file_io import clients_like
from sink_job.tables.hive_tables.registration import PartitionRegistration
from sink_job.tables.hive_tables.store import PartitionStore
from sink_job.tables.plan import Request
from sink_job.tables.registrations.topic_table import RegistrationOutcome, TopicTable
from sink_job.tables.successors.chain import ChainRegistration

AnyCatalog = TableCatalog | PartitionStore


class Registers(Protocol):
    """A registration of one table."""

    def run(self, request: Request, *, dry_run: bool = False) -> RegistrationOutcome: ...


def open_any(spec: CatalogSpec, settings: S3Settings, access: CatalogAccess) -> AnyCatalog:
    """The catalog of a manifest, see `open_catalog`. `settings` are those of the sink."""
    if spec.type is CatalogType.GLUE_PARTITIONS:
        from sink_job.tables.hive_tables.glue_partitions import GluePartitions  # only here: it loads boto3

        return GluePartitions(spec, access)
    if spec.type is CatalogType.HIVE_PARTITIONS:
        from sink_job.tables.hive_tables.hive_partitions import HivePartitions  # only here: it loads Thrift

        assert spec.uri is not None, "the rules require it"
        return HivePartitions(spec.uri, access)
    return open_catalog(spec, clients_like(settings), access)


def registration_in(catalog: AnyCatalog, s3: S3Client, root: str, target: TopicTable) -> Registers:
    """The registration of a table in `catalog`. `root` is the ledger's prefix and ends with `/`."""
    if isinstance(catalog, PartitionStore):
        return PartitionRegistration(s3, root, catalog, target)
    return ChainRegistration(s3, root, catalog, target)
