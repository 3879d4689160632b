"""The tables of a manifest, and what registrations and commands about them read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from sink_job.api.enums import OnMissing, OnTableChange
from sink_job.api.errors import InvalidSpec
from sink_job.api.sections.tables_section import TableSpec
from sink_job.api.spec import Sink
from sink_job.ledger.first_claim.ledger_place import ledger_root
from sink_job.ledger.store import Ledger
from sink_job.s3 import S3Client, S3Settings
from sink_job.tables.catalog.access import CatalogAccess, CatalogSecrets
from sink_job.tables.hive_tables.choice import AnyCatalog, open_any
from sink_job.tables.housekeeping import Housekeeping
from sink_job.tables.ledger_reader import KnownFiles, TopicObjects, read_ledger
from sink_job.tables.names import check_chosen, check_owner, check_successors, table_names
from sink_job.tables.plan import LedgerView
from sink_job.tables.registrations.topic_table import TopicTable
from sink_job.tables.successors.continuation import Successors


@dataclass(frozen=True)
class SinkTables:
    """A sink with tables. `view` and `objects` (by topic) are those of the ledger when it was opened, `secrets` are
    those of the catalogs. `creates_nothing`: its catalogs are read alone."""

    sink: Sink
    settings: S3Settings
    s3: S3Client
    view: LedgerView
    objects: Mapping[str, TopicObjects]
    secrets: CatalogSecrets = field(default_factory=CatalogSecrets)
    creates_nothing: bool = False

    @property
    def root(self) -> str:
        """The prefix of the ledger."""
        return ledger_root(self.s3, self.sink.spec.s3.topics_dir, self.sink.sink_id)

    @property
    def prefixes(self) -> list[str]:
        """The prefixes of all keys that the sink writes."""
        topics_dir, rejected = self.sink.spec.s3.topics_dir, self.sink.spec.errors.dead_letters.prefix
        return [f"{topics_dir}/" if topics_dir else "", *([] if rejected is None else [f"{rejected}/"])]

    def read(self) -> tuple[LedgerView, Mapping[str, TopicObjects]]:
        """Reads the ledger."""
        return read_ledger(Ledger(self.s3, self.root, "register"), self.sink.sink_id)

    def tables(self, chosen: Collection[str]) -> Iterator[tuple[AnyCatalog, str, str]]:
        """The catalog, the name and the topic of each table, or of those that are chosen. Raises InvalidSpec for an
        unknown table, before it opens the first catalog."""
        names = [(spec, table_names(spec.name, self.objects)) for spec in self.sink.spec.tables]
        check_chosen({name for _, of_topics in names for name in of_topics.values()}, chosen)
        for spec, of_topics in names:
            mine = {topic: name for topic, name in of_topics.items() if not chosen or name in chosen}
            catalog = self.catalog(spec) if mine else None
            for topic, name in mine.items():
                assert catalog is not None
                yield catalog, name, topic

    def target(self, name: str, topic: str, wait: Callable[[float], None]) -> TopicTable:
        """The table of a topic, and what is to be in it. `wait` is called with seconds. Raises InvalidSpec if several
        entries of the manifest have a table of this name, since its position is one, and TableNotRegistered if several
        topics have it, or a table may be continued in another one."""
        found = [spec for spec in self.sink.spec.tables if name in table_names(spec.name, self.objects).values()]
        if len(found) != 1:
            raise InvalidSpec([f"spec.tables: {len(found)} entries have the table {name}: use a name for each"])
        check_owner(table_names(found[0].name, self.objects), name)
        self._check_successors(name)
        return TopicTable(
            name=name,
            topic=topic,
            objects=self.objects[topic],
            ledger=self.view,
            prefixes=self.prefixes,
            wait=wait,
            partitioning=found[0].partitioning,
            branch=found[0].branch,
            housekeeping=Housekeeping(found[0].history, found[0].keep_objects),
            skips_missing=found[0].on_missing is OnMissing.SKIP,
            successors=Successors(
                on_reset=found[0].on_reset is OnTableChange.NEW_TABLE,
                on_incompatible=found[0].on_incompatible is OnTableChange.NEW_TABLE,
                base=name,
            ),
        )

    def _check_successors(self, name: str) -> None:
        """Neither the table nor one of its successors is that of another topic or entry, or a successor of it."""
        names = [(spec, table_names(spec.name, self.objects).values()) for spec in self.sink.spec.tables]
        continued = {each for spec, of_spec in names if may_continue(spec) for each in of_spec}
        check_successors({each for _, of_spec in names for each in of_spec}, continued & {name})
        check_successors({name}, continued)

    def catalog(self, spec: TableSpec) -> AnyCatalog:
        """Opens the catalog of these tables. Raises ConfigurationError and TransientError."""
        access = CatalogAccess.of(spec.catalog, self.secrets, self.settings)
        access = replace(access, creates_nothing=self.creates_nothing)
        return open_any(spec.catalog, self.settings, access)


def may_continue(spec: TableSpec) -> bool:
    """Whether its tables may be continued in new ones."""
    return OnTableChange.NEW_TABLE in (spec.on_reset, spec.on_incompatible)


def open_tables(
    sink: Sink, secrets: CatalogSecrets, *, reads_only: bool = False, creates_nothing: bool = False
) -> SinkTables:
    """Connects to the bucket and reads the ledger. `creates_nothing`: nothing is written to a catalog. Raises
    ConfigurationError and the errors of the store."""
    from sink_job.s3 import connect  # here, as in other commands: tests replace it

    settings = S3Settings.of(sink.spec, secrets.directories, reads_only=reads_only)
    s3 = connect(settings)
    s3.check_access()
    return replace(read_tables(sink, settings, s3, secrets), creates_nothing=reads_only or creates_nothing)


def read_tables(
    sink: Sink,
    settings: S3Settings,
    s3: S3Client,
    secrets: CatalogSecrets | None = None,
    known: KnownFiles | None = None,
) -> SinkTables:
    """Reads the ledger; `known`: what an earlier call has read. Raises ConfigurationError and errors of the store."""
    ledger = Ledger(s3, ledger_root(s3, sink.spec.s3.topics_dir, sink.sink_id), "register")
    view, objects = read_ledger(ledger, sink.sink_id, known)
    return SinkTables(sink, settings, s3, view, objects, secrets or CatalogSecrets())
