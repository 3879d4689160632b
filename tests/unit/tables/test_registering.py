"""The registration of tables in a driver."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.errors import ConfigurationError
from sink_job.api.parser import load_sink
from sink_job.api.spec import Sink
from sink_job.coordinator.progress import Progress
from sink_job.s3 import S3Settings
from sink_job.tables import registering as module
from sink_job.tables.registrar import Registrar
from tests.support.sink_fixture import manifest
from tests.support.table_sink import FORMAT

TABLES = [{"catalog": {"type": "Rest", "uri": "https://catalog.example.com"}, "name": "lake.{topic}"}]


def sink(*tables: Any) -> Sink:
    return load_sink(
        manifest("archive", "http://127.0.0.1:9", flush_size=10, spec={"format": FORMAT, "tables": tables})
    )


def test_a_sink_with_tables_needs_pyiceberg(monkeypatch: pytest.MonkeyPatch) -> None:
    module.check_installed(sink(*TABLES))
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    module.check_installed(sink())
    with pytest.raises(ConfigurationError, match=r"s3sink\[job,tables\]"):
        module.check_installed(sink(*TABLES))


@pytest.mark.parametrize("tables", [(), TABLES])
def test_a_sink_registers_if_it_has_tables(tables: Any) -> None:
    found = sink(*tables)
    settings: Any = S3Settings.of(found.spec, {})
    s3: Any = None
    progress = Progress(found, lambda: 0)
    registrar = module.registering(found, settings, s3, progress, lambda: 0, str)
    assert isinstance(registrar, Registrar) is bool(tables)
