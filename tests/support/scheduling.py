"""Which tests stay with one pytest worker: those of a file, of all files that share a Spark session, or a node."""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling

SHARED_SPARK = frozenset(
    f"tests/data/test_{name}.py"
    for name in (
        "apicurio_registry",
        "bad_situations",
        "binary_values",
        "connect_worker",
        "ddl",
        "dead_letter_totals",
        "deleted_topics",
        "envelopes",
        "executor_memory",
        "existing_tables",
        "growing_activity",
        "inferred_schema",
        "java_readers",
        "kafka_cases",
        "kafka_logins",
        "ledger_place_commands",
        "parquet_java",
        "plan",
        "protobuf_registry",
        "python_workers",
        "query_page",
        "reader",
        "reader_ends",
        "reader_groups",
        "reader_records",
        "rejected_share",
        "repair_command",
        "request_commands",
        "scenarios",
        "schema_registry",
        "two_drivers",
        "verify_command",
    )
)
"""The files that use the `spark` fixture, also through `spark_fixture` or `sink_here`.

A session and the first read take 15 s of CPU time in each worker."""

SHARED_NODE = frozenset(f"tests/e2e/test_{name}.py" for name in ("on_a_node", "network_policies"))
"""The files that use the `site` fixture: a node with the operator."""


class FileScheduling(LoadFileScheduling):  # type: ignore[misc]
    """xdist's scheduling of whole files, with the files of SHARED_SPARK as one, and those of SHARED_NODE."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        if file in SHARED_NODE:
            return "node"
        return "spark" if file in SHARED_SPARK else file
