"""`s3sink verify --table`: compares the tables of a manifest with the ledger. Read-only."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sink_job.api.errors import DataLoss, InvalidSpec, ObjectConflict
from sink_job.driver.secret_registry import SECRETS
from sink_job.tables.auditor import verify_table
from sink_job.tables.catalog.access import CatalogSecrets
from sink_job.tables.hive_tables.store import PartitionStore
from sink_job.tables.sink_tables import open_tables

if TYPE_CHECKING:
    from sink_job.api.spec import Sink
    from sink_job.tables.audit import TableAudit

MAX_SHOWN = 20
"""Maximum number of findings of a table in the text. JSON contains all."""


def run(args: argparse.Namespace, sink: Sink, secrets: Mapping[str, Path]) -> int:
    """Prints the results; returns 0, 5 if a table lacks records, or 6 for other findings."""
    if not sink.spec.tables:
        raise InvalidSpec(["spec.tables is missing: it names the catalog and the tables"])
    if not any(each.catalog.type.is_iceberg for each in sink.spec.tables):
        raise InvalidSpec(["spec.tables has no table of Iceberg: only these have files that can be compared"])
    opened = open_tables(sink, CatalogSecrets(secrets, SECRETS.hide), reads_only=True)
    found: dict[str, TableAudit] = {}
    for catalog, name, topic in opened.tables(()):
        if isinstance(catalog, PartitionStore):
            continue
        branch = opened.target(name, topic, time.sleep).branch
        found[name] = verify_table(catalog, name, topic, opened.read, sink.spec.s3.bucket, opened.prefixes, branch)
    if args.output == "json":
        tables = [_document(name, audit) for name, audit in found.items()]
        print(json.dumps({"sinkId": sink.sink_id, "exitCode": exit_code(found.values()), "tables": tables}, indent=2))
    else:
        for name, audit in found.items():
            _show(name, audit)
    return exit_code(found.values())


def exit_code(audits: Iterable[TableAudit]) -> int:
    """0 without findings; the code of data loss if a table lacks records; else that of a conflict."""
    findings = [finding for audit in audits for finding in audit.findings]
    if any(each.kind.is_missing for each in findings):
        return DataLoss.exit_code
    return ObjectConflict.exit_code if findings else 0


def _show(name: str, audit: TableAudit) -> None:
    verdict = "OK" if not audit.findings else f"{len(audit.findings):,} findings"
    print(
        f"{name}: {verdict}; {audit.objects:,} objects of the sink, {audit.records:,} records in all files; "
        f"{audit.waiting:,} published objects are not registered yet"
    )
    if audit.others:
        print(
            f"  note: {audit.others:,} files are outside of the sink's prefixes, such as those of a compaction. "
            "Whether objects are missing cannot be verified by metadata"
        )
    for each in audit.findings[:MAX_SHOWN]:
        print(f"  {each.kind}: {f'{each.path}: ' if each.path else ''}{each.message}")
    if len(audit.findings) > MAX_SHOWN:
        print(f"  … and {len(audit.findings) - MAX_SHOWN:,} more; -o json has all")


def _document(name: str, audit: TableAudit) -> dict[str, Any]:
    return {
        "table": name,
        "objects": audit.objects,
        "records": audit.records,
        "waiting": audit.waiting,
        "others": audit.others,
        "findings": [{"type": each.kind, "path": each.path, "message": each.message} for each in audit.findings],
    }
