"""What a driver without a registry, and a worker, do not pay for."""

from __future__ import annotations

import subprocess
import sys

_CHECK = """
import sys
import sink_job.coordinator.schemas.schema_resolver, sink_job.registry.settings, sink_job.ledger.schemas.schema_store
{more}
print([name for name in ("confluent_kafka", "httpx2", "authlib") if name in sys.modules])
"""


def imported(more: str) -> str:
    """The client libraries that are imported after `more`."""
    command = [sys.executable, "-c", _CHECK.format(more=more)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_client_library_is_imported_with_the_first_client() -> None:
    assert imported("") == "[]"


def test_aws_glue_needs_none_of_the_client_libraries_of_the_other_registries() -> None:
    assert imported("import sink_job.registry.clients.glue") == "[]"
