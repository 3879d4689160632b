"""What the dialects share: types as text, quoted names and texts, comments, and codecs that an engine lacks."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sink_job.api.enums import CompressionCodec, OutputFormat
from sink_job.ddl.columns import MAX_DECIMAL
from sink_job.ddl.table import ColumnType, Kind, PathColumn, SinkTable, Statement, TableColumn

PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class NoSuchType(Exception):
    """The engine has no type for a column."""


@dataclass(frozen=True)
class TypeNames:
    """The types of an engine. `scalars` have no entry for what it lacks. `struct` joins fields as `struct_field`
    writes them. `names` is a pattern for the names of fields within structs."""

    engine: str
    scalars: Mapping[Kind, str]
    decimal: str
    array: str
    map: str
    struct: str
    struct_field: Callable[[str, str], str]
    timestamp: Callable[[ColumnType], str | None]
    names: re.Pattern[str] | None = None

    def text(self, kind: ColumnType) -> str:
        """The type as text. Raises NoSuchType."""
        match kind.kind:
            case Kind.ARRAY:
                return self.array.format(self.text(kind.items))
            case Kind.MAP:
                return self.map.format(self.text(kind.keys), self.text(kind.items))
            case Kind.STRUCT if not kind.fields:
                raise NoSuchType(f"{self.engine} has no type for an object without fields")
            case Kind.STRUCT:
                return self.struct.format(", ".join(self._field(each) for each in kind.fields))
            case Kind.DECIMAL if kind.precision <= MAX_DECIMAL:
                return self.decimal.format(kind.precision, kind.scale)
            case Kind.TIMESTAMP | Kind.LOCAL_TIMESTAMP:
                found = self.timestamp(kind)
            case _:
                found = self.scalars.get(kind.kind)
        if found is None:
            digits = f" of {kind.precision} digits" if kind.precision else ""
            raise NoSuchType(f"{self.engine} has no type for a {kind.kind}{digits}")
        return found

    def _field(self, each: TableColumn) -> str:
        if self.names is not None and not self.names.fullmatch(each.name):
            raise NoSuchType(f"{self.engine} has no field with the name {each.name!r} within a struct")
        return self.struct_field(each.name, self.text(each.type))


def typed_columns(
    columns: Sequence[TableColumn], types: TypeNames, statement: Statement, taken: Collection[str] = ()
) -> Iterator[tuple[str, str]]:
    """The name and type of each column that the engine can have; the others are gaps of the statement. `taken` are
    further names of the table, without regard to case."""
    names = {each.lower() for each in taken}
    for each in columns:
        if not each.name or not each.name.isprintable():
            what = "control characters" if each.name else "no characters"
            statement.gaps.append(f"column {each.name!r} is left out: its name has {what}")
            continue
        if each.name.lower() in names:
            statement.gaps.append(f"column {each.name!r} is left out: another column has this name but for its case")
            continue
        try:
            text = types.text(each.type)
        except NoSuchType as error:
            statement.gaps.append(f"column {each.name!r} is left out: {error}")
            continue
        names.add(each.name.lower())
        yield each.name, text


def quoted(name: str, mark: str = '"') -> str:
    """A name in quotes."""
    return mark + name.replace(mark, mark * 2) + mark


def escaped_name(name: str) -> str:
    """A name in the quotes of ClickHouse, in which a backslash escapes."""
    return quoted(name.replace("\\", "\\\\"), "`")


def check_template(table: SinkTable, statement: Statement) -> None:
    """Adds a gap if the place of the objects has what a template of locations replaces."""
    if "${" in table.url():
        statement.gaps.append(
            f"the place {table.url()} has ${{, which the template of locations replaces: use another spec.s3.topicsDir"
        )


def sql_text(text: str) -> str:
    """A text of standard SQL."""
    return "'" + text.replace("'", "''") + "'"


def escaped_text(text: str) -> str:
    """A text with the escapes of Hive, Spark and ClickHouse."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def commented(statement: Statement, table: SinkTable) -> str:
    """The statement with its comments above it."""
    lines = [f"-- {table.topic}: {table.url()}"]
    for note in (*table.notes, *statement.notes):
        lines.append(f"-- {_one_line(note)}")
    for gap in (*table.gaps, *statement.gaps):
        lines.append(f"-- NOT EXPRESSED: {_one_line(gap)}")
    return "\n".join([*lines, *([statement.text] if statement.text is not None else [])]) + "\n"


def _one_line(text: str) -> str:
    return " ".join(text.split())


_LACKS: Final[Mapping[tuple[str, OutputFormat], tuple[CompressionCodec, ...]]] = {
    ("hive", OutputFormat.PARQUET): (CompressionCodec.BROTLI, CompressionCodec.LZ4),
    ("hive", OutputFormat.JSON): (CompressionCodec.ZSTD,),
    ("hive", OutputFormat.BYTES): (CompressionCodec.ZSTD,),
    ("hive", OutputFormat.AVRO): (CompressionCodec.ZSTD,),
    ("athena", OutputFormat.PARQUET): (CompressionCodec.BROTLI, CompressionCodec.LZ4),
    ("glue", OutputFormat.PARQUET): (CompressionCodec.BROTLI, CompressionCodec.LZ4),
    ("trino", OutputFormat.PARQUET): (CompressionCodec.BROTLI,),
    ("spark", OutputFormat.PARQUET): (CompressionCodec.BROTLI,),
    ("spark", OutputFormat.JSON): (CompressionCodec.ZSTD,),
    ("spark", OutputFormat.BYTES): (CompressionCodec.ZSTD,),
    ("clickhouse", OutputFormat.AVRO): (CompressionCodec.BZIP2,),
}
"""The codecs that the engines do not read, or only with a library that their distributions lack."""


def check_codec(table: SinkTable, dialect: str, statement: Statement) -> None:
    """Adds a gap if the engine may not read the compression of the objects."""
    if table.codec in _LACKS.get((dialect, table.output), ()):
        statement.gaps.append(
            f"{dialect} does not read {table.output} objects with the codec {table.codec} in all of its distributions: "
            "choose another format.compression.codec"
        )


def check_lines(table: SinkTable, dialect: str, statement: Statement) -> None:
    """Adds a gap if records are not divided by newlines."""
    if table.output is OutputFormat.BYTES and table.separator != "\n":
        statement.gaps.append(
            f"records are divided by {table.separator!r}: {dialect} reads lines (format.bytes.separator)"
        )


def leave_out_tombstones(table: SinkTable, statement: Statement) -> None:
    """Adds a gap if records without a value are in a directory that is none of the table's partitions."""
    if table.tombstones is not None and table.paths:
        statement.gaps.append(
            f"records without a value are below {table.tombstones}/, which is no partition: the table does not have "
            "them (errors.tombstonePath)"
        )


def directories(table: SinkTable, literal: Callable[[str], str]) -> str:
    """A pattern of the table's directories, with `/` at its end: those of its partitions if others have records without
    a value. `literal` makes a pattern of a text."""
    return "".join("*".join(map(literal, each.template.split("{}"))) + "/" for each in table.paths)


def unnamed_paths(table: SinkTable, dialect: str, statement: Statement) -> Sequence[PathColumn]:
    """The path columns of an engine that finds them by `name=value`; none, and a gap, if the path has another form."""
    if table.has_named_paths:
        return table.paths
    path = "/".join(each.template for each in table.paths)
    statement.gaps.append(f"{dialect} has no columns for the path {path}: its elements are not name=value")
    return ()
