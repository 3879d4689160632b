"""Partitions in Hive's metastore: servers that do not answer. tests/data/test_ddl_hive.py has a metastore."""

from __future__ import annotations

import socket

import pytest

from sink_job.api.errors import TransientError
from sink_job.tables.catalog.access import CatalogAccess
from sink_job.tables.hive_tables.hive_partitions import HivePartitions


def test_a_metastore_that_does_not_exist_or_answer_is_a_transient_error() -> None:
    with pytest.raises(TransientError, match="Hive's metastore thrift://127"):
        HivePartitions("thrift://127.0.0.1:9").table("lake.log")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        uri = f"thrift://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(TransientError, match="read timeout"):
            HivePartitions(uri, CatalogAccess(timeout_s=0.2)).table("lake.log")
