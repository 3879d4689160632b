"""The examples in docstrings."""

from __future__ import annotations

import doctest
import importlib
from typing import Final

import pytest

MODULES: Final = (
    "sink_job.arrow.columns",
    "sink_job.arrow.json_columns",
    "sink_job.arrow.varints",
    "sink_job.avro.column_encoder",
    "sink_job.avro.visitor",
    "sink_job.connect.visitor",
    "sink_job.converters.wire_format",
    "sink_job.formats.datum_rows",
    "sink_job.parquet.columns",
    "sink_job.parquet.encodings",
    "sink_job.partitioning.partitioner",
    "sink_job.partitioning.time_zones",
    "sink_job.records.fields",
    "sink_job.rotation.row_index",
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_are_right(name: str) -> None:
    failed, attempted = doctest.testmod(importlib.import_module(name))
    assert not failed
    assert attempted
