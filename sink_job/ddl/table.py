"""A table over the objects of one topic, independent of a query engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from sink_job.api.enums import CompressionCodec, OutputFormat


class Kind(StrEnum):
    """The types of columns. JSON is a text with any JSON value."""

    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    STRING = "string"
    BYTES = "bytes"
    JSON = "json"
    UUID = "uuid"
    DECIMAL = "decimal"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    LOCAL_TIMESTAMP = "local timestamp"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"
    UNION = "union"
    RECURSIVE = "recursive type"


@dataclass(frozen=True)
class ColumnType:
    """A type. `precision` and `scale` are those of a decimal; `precision` of a timestamp is its number of digits after
    the seconds. `element` is the type of the items of an array and of the values of a map, `key` that of its keys.
    `fields` are those of a struct."""

    kind: Kind
    precision: int = 0
    scale: int = 0
    element: ColumnType | None = None
    key: ColumnType | None = None
    fields: tuple[TableColumn, ...] = ()

    @property
    def items(self) -> ColumnType:
        """`element`, which an array and a map have."""
        assert self.element is not None, "an array or a map has it"
        return self.element

    @property
    def keys(self) -> ColumnType:
        """`key`, which a map has."""
        assert self.key is not None, "a map has it"
        return self.key


@dataclass(frozen=True)
class TableColumn:
    """A column, or a field of a struct."""

    name: str
    type: ColumnType


class Projection(StrEnum):
    """How an engine can list the values of a path element without reading the bucket."""

    INTEGER = "integer"
    DATE = "date"
    INJECTED = "injected"
    """Each query names the values."""


@dataclass(frozen=True)
class PathColumn:
    """A path element as a column. `lowest`, `highest` and `digits` are those of INTEGER (0 digits: not padded);
    `pattern` is the date pattern of DATE in Java's letters, and `unit` the step. `template` is the element with `{}` in
    place of the value. `is_named`: the element is `name=value`."""

    name: str
    projection: Projection
    template: str
    is_named: bool = True
    lowest: int = 0
    highest: int = 0
    digits: int = 0
    pattern: str = ""
    unit: str = ""


@dataclass(frozen=True)
class SinkTable:
    """A table over the objects of a topic.

    `bucket` and `prefix` (with the delimiter at its end) are the place of its objects, `extension` their end. `columns`
    None: each record is one text. `avro` is the Avro schema of Avro objects. `paths` are the elements between the
    prefix and the file. `tombstones` is the directory below the prefix with the records without a value; None if they
    are among the others. `notes` are what the user should know, `gaps` what the table cannot express.
    """

    name: str
    topic: str
    bucket: str
    prefix: str
    extension: str
    output: OutputFormat
    codec: CompressionCodec
    columns: tuple[TableColumn, ...] | None
    paths: tuple[PathColumn, ...] = ()
    avro: str | None = None
    separator: str = "\n"
    endpoint: str | None = None
    region: str | None = None
    tombstones: str | None = None
    notes: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    @property
    def has_named_paths(self) -> bool:
        """Whether each element of the path is `name=value`."""
        return all(each.is_named for each in self.paths)

    def url(self, scheme: str = "s3") -> str:
        """The place of the objects, with `/` at its end."""
        return f"{scheme}://{self.bucket}/{self.prefix}"


@dataclass
class Statement:
    """What a dialect prints: the statement (None if it has none), and comments. `gaps` are what it cannot express."""

    text: str | None
    notes: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)


def without_paths(table: SinkTable) -> Sequence[TableColumn]:
    """The columns but those with the name of a path column, which most engines do not allow twice. Names are compared
    without regard to case."""
    names = {each.name.lower() for each in table.paths}
    return [each for each in table.columns or () if each.name.lower() not in names]
