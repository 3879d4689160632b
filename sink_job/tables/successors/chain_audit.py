"""The audits of all tables of a topic: nothing is in two of them, and nothing is missing in all."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from pyiceberg.table.refs import MAIN_BRANCH

from sink_job.s3 import S3Client
from sink_job.tables.audit import TableAudit
from sink_job.tables.auditor import ReadLedger, RowAccess, verify_table
from sink_job.tables.audits.findings import MAX_LISTED, TableFinding, TableFindingKind
from sink_job.tables.catalogs import TableCatalog
from sink_job.tables.memory import StoredMemory
from sink_job.tables.successors.continuation import Continuation, continuation_in
from sink_job.tables.successors.parts import TablePart


@dataclass(frozen=True)
class _Member:
    """A table, what the tables before it have, and where the objects after it are."""

    name: str
    start: Continuation | None
    end: Continuation | None
    exists: bool
    is_remembered: bool


@dataclass(frozen=True)
class ChainAuditor:
    """Audits the tables of one topic. `root` is the ledger's prefix; other fields are as for `verify_table`."""

    s3: S3Client
    root: str
    catalog: TableCatalog
    topic: str
    read: ReadLedger
    bucket: str
    prefixes: Sequence[str]
    branch: str = MAIN_BRANCH
    rows: RowAccess | None = None

    def audits(self, name: str) -> Mapping[str, TableAudit]:
        """The audit of each table, the first one being `name`. Raises as `verify_table`."""
        ledger, by_topic = self.read()
        members = self._members(name, ledger.sink_id)
        found = {each.name: self._audit(each) for each in members}
        if len(members) == 1:
            return found
        objects = by_topic.get(self.topic, ())
        owners = {
            f"s3://{self.bucket}/{o.key}": each.name
            for each in members
            for o in TablePart(objects, each.start, each.end)
        }
        return {table: _named(table, audit, found, owners) for table, audit in found.items()}

    def _members(self, name: str, sink_id: str) -> list[_Member]:
        found: list[_Member] = []
        start: Continuation | None = None
        while True:
            memory = StoredMemory(self.s3, self.root, name).read()
            table = self.catalog.load(name)
            end = None if memory is None else memory.continued
            if table is not None:
                end = continuation_in(table.properties, sink_id) or end
            found.append(_Member(name, start, end, table is not None, memory is not None))
            if end is None:
                return found
            name, start = end.table, end

    def _audit(self, member: _Member) -> TableAudit:
        if not member.exists and member.end is not None:
            return self._dropped(member)
        if not member.exists and member.start is not None and not member.is_remembered:
            _, by_topic = self.read()
            waiting = sum(1 for _ in TablePart(by_topic.get(self.topic, ()), member.start))
            return TableAudit(0, 0, waiting, 0, [])
        return verify_table(
            self.catalog,
            member.name,
            self.topic,
            self.read,
            self.bucket,
            self.prefixes,
            self.branch,
            self.rows,
            part=(member.start, member.end),
        )

    def _dropped(self, member: _Member) -> TableAudit:
        """A table that was left and does not exist any more. Objects before a reset have records that later ones have
        again."""
        ledger, by_topic = self.read()
        lost = [
            TableFinding(
                TableFindingKind.OBJECT_MISSING,
                f"s3://{self.bucket}/{o.key}",
                f"the table {member.name}, which had the object, does not exist any more",
            )
            for o in TablePart(by_topic.get(self.topic, ()), member.start, member.end)
            if o.acknowledged > ledger.copied_from
        ]
        return TableAudit(0, 0, 0, 0, lost[:MAX_LISTED], more=max(0, len(lost) - MAX_LISTED))


def _named(table: str, audit: TableAudit, audits: Mapping[str, TableAudit], owners: Mapping[str, str]) -> TableAudit:
    """The audit with a finding of its own for an object of another table of the topic."""
    findings = [_of_chain(each, table, audits, owners) for each in audit.findings]
    return replace(audit, findings=findings)


def _of_chain(
    finding: TableFinding, table: str, audits: Mapping[str, TableAudit], owners: Mapping[str, str]
) -> TableFinding:
    owner = owners.get(finding.path)
    if finding.kind is not TableFindingKind.FILE_UNKNOWN or owner in (None, table):
        return finding
    assert owner is not None
    if finding.path in _missing(audits[owner].findings):
        message = f"the object belongs to the table {owner}, which does not have it"
        return TableFinding(TableFindingKind.FILE_UNKNOWN, finding.path, message)
    return TableFinding(TableFindingKind.FILE_TWICE, finding.path, f"the object is in the table {owner}, too")


def _missing(findings: Collection[TableFinding]) -> Collection[str]:
    return {each.path for each in findings if each.kind is TableFindingKind.OBJECT_MISSING}
