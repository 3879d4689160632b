"""`s3sink verify --table`: compares the tables of a manifest with the ledger. Read-only."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sink_job.api.errors import DataLoss, InvalidSpec, ObjectConflict, TableNotRegistered
from sink_job.driver.secret_registry import SECRETS
from sink_job.tables.auditor import RowAccess
from sink_job.tables.audits.findings import MAX_LISTED
from sink_job.tables.catalog.access import CatalogSecrets
from sink_job.tables.hive_tables.store import PartitionStore
from sink_job.tables.sink_tables import open_tables
from sink_job.tables.successors.chain_audit import ChainAuditor

if TYPE_CHECKING:
    from sink_job.api.spec import Sink
    from sink_job.tables.audit import TableAudit
    from sink_job.tables.audits.findings import TableFinding

MAX_SHOWN = 20
"""Maximum number of findings of a table in the text. JSON contains all."""


def run(args: argparse.Namespace, sink: Sink, secrets: Mapping[str, Path]) -> int:
    """Prints the results; returns 0, 5 if a table lacks records, or 6 for other findings."""
    if not sink.spec.tables:
        raise InvalidSpec(["spec.tables is missing: it names the catalog and the tables"])
    if not any(each.catalog.type.is_iceberg for each in sink.spec.tables):
        raise InvalidSpec(["spec.tables has no table of Iceberg: only these have files that can be compared"])
    opened = open_tables(sink, CatalogSecrets(secrets, SECRETS.hide), reads_only=True)
    rows = RowAccess(opened.s3, opened.root) if args.deep else None
    found: dict[str, TableAudit] = {}
    failed: list[TableNotRegistered] = []
    for catalog, name, topic in opened.tables(()):
        if isinstance(catalog, PartitionStore):
            continue
        try:
            branch = opened.target(name, topic, time.sleep).branch
        except TableNotRegistered as error:  # the others are verified
            failed.append(error)
            continue
        read, bucket, prefixes = opened.read, sink.spec.s3.bucket, opened.prefixes
        auditor = ChainAuditor(opened.s3, opened.root, catalog, topic, read, bucket, prefixes, branch, rows)
        found |= auditor.audits(name)
    if args.output == "json":
        tables = [_document(name, audit) for name, audit in found.items()]
        print(json.dumps({"sinkId": sink.sink_id, "exitCode": exit_code(found.values()), "tables": tables}, indent=2))
    else:
        for name, audit in found.items():
            show(name, audit, has_envelope=sink.spec.format.envelope)
    if failed:
        raise failed[0]
    return exit_code(found.values())


def exit_code(audits: Iterable[TableAudit]) -> int:
    """0 without findings; the code of data loss if a table lacks records; else that of a conflict."""
    findings = [finding for audit in audits for finding in audit.findings]
    if any(each.kind.is_missing for each in findings):
        return DataLoss.exit_code
    return ObjectConflict.exit_code if findings else 0


def show(name: str, audit: TableAudit, *, has_envelope: bool) -> None:
    """Prints the result for a table. `has_envelope`: the sink has `format.envelope`."""
    count = len(audit.findings) + audit.more
    verdict = f"{count:,} findings" if count else "OK"
    print(
        f"{name}: {verdict}; {audit.objects:,} objects of the sink, {audit.records:,} records in all files; "
        f"{audit.waiting:,} published objects are not registered yet"
    )
    if audit.others:
        print(
            f"  note: {audit.others:,} files are outside of the sink's prefixes, such as those of a compaction. ",
            end="",
        )
        print(_of_others(audit, has_envelope=has_envelope))
    if audit.skipped:
        print(
            f"  note: {audit.skipped:,} objects did not exist when the table was registered, and are not in it "
            "(onMissing: Skip)"
        )
    for note in audit.notes:
        print(f"  note: {note}")
    for each in audit.findings[:MAX_SHOWN]:
        print(f"  {each.kind}: {f'{each.path}: ' if each.path else ''}{each.message}")
    if count > MAX_SHOWN:
        print(f"  … and {count - MAX_SHOWN:,} more; -o json has up to {MAX_LISTED:,} of each kind")


def _of_others(audit: TableAudit, *, has_envelope: bool) -> str:
    """What is known of the records in files of others."""
    if audit.proven is not None:
        return (
            f"Of the {audit.moved:,} records whose objects are not in the table, {audit.proven:,} are in the rows of "
            "these files, each once"
        )
    what = "Whether records are missing cannot be verified by metadata"
    return f"{what}: --deep reads the rows" if has_envelope else f"{what}; format.envelope makes rows verifiable"


def _document(name: str, audit: TableAudit) -> dict[str, Any]:
    return {
        "table": name,
        "objects": audit.objects,
        "records": audit.records,
        "waiting": audit.waiting,
        "others": audit.others,
        "skipped": audit.skipped,
        "moved": audit.moved,
        "proven": audit.proven,
        "notes": list(audit.notes),
        "moreFindings": audit.more,
        "findings": [_finding(each) for each in audit.findings],
    }


def _finding(finding: TableFinding) -> dict[str, Any]:
    place = {} if finding.offset is None else {"partition": finding.partition, "offset": finding.offset}
    return {"type": finding.kind, "path": finding.path, "message": finding.message, **place}
