"""Types, names and comments of statements."""

from __future__ import annotations

import pytest

from sink_job.api.enums import CompressionCodec, OutputFormat
from sink_job.ddl.dialects.hive import TYPES
from sink_job.ddl.dialects.rendering import (
    NoSuchType,
    check_codec,
    check_lines,
    check_template,
    commented,
    directories,
    escaped_name,
    escaped_text,
    quoted,
    sql_text,
    typed_columns,
    unnamed_paths,
)
from sink_job.ddl.table import ColumnType, Kind, Statement, TableColumn
from tests.unit.ddl.tables import HOSTILE, HOURLY, UNNAMED, S, json_table, table


def test_names_and_texts_are_quoted() -> None:
    assert quoted('a"b') == '"a""b"'
    assert quoted("a`b", "`") == "`a``b`"
    assert sql_text("a'b") == "'a''b'"
    assert escaped_text("a'b\\c\n") == "'a\\'b\\\\c\\n'"


@pytest.mark.parametrize(
    "kind",
    [
        ColumnType(Kind.TIME, 6),
        ColumnType(Kind.UNION),
        ColumnType(Kind.RECURSIVE),
        ColumnType(Kind.UUID),
        ColumnType(Kind.DECIMAL, 39),
        ColumnType(Kind.ARRAY, element=ColumnType(Kind.UNION)),
        ColumnType(Kind.STRUCT, fields=(TableColumn("a b", ColumnType(Kind.INT)),)),
    ],
)
def test_a_type_that_the_engine_lacks_is_an_error(kind: ColumnType) -> None:
    with pytest.raises(NoSuchType, match="Hive has no"):
        TYPES.text(kind)


def test_columns_that_cannot_be_are_gaps_and_the_others_remain() -> None:
    statement = Statement(None)
    columns = [*HOSTILE[-2:], TableColumn("u", ColumnType(Kind.UNION)), TableColumn("hour", ColumnType(Kind.INT))]
    assert list(typed_columns(columns, TYPES, statement, ["HOUR"])) == [("Select", "string")]
    assert statement.gaps == [
        "column 'SELECT' is left out: another column has this name but for its case",
        "column 'u' is left out: Hive has no type for a union",
        "column 'hour' is left out: another column has this name but for its case",
    ]


@pytest.mark.parametrize(
    ("column", "gap"),
    [
        (TableColumn("", S), "column '' is left out: its name has no characters"),
        (TableColumn("a\0b", S), "column 'a\\x00b' is left out: its name has control characters"),
        (TableColumn("o", ColumnType(Kind.STRUCT)), "column 'o' is left out: Hive has no type for an object without"),
        (
            TableColumn("list", ColumnType(Kind.ARRAY, element=ColumnType(Kind.STRUCT))),
            "column 'list' is left out: Hive has no type for an object without fields",
        ),
    ],
)
def test_a_column_without_a_name_or_a_type_is_a_gap(column: TableColumn, gap: str) -> None:
    statement = Statement(None)
    assert list(typed_columns([column, TableColumn("n", S)], TYPES, statement)) == [("n", "string")]
    assert [each.startswith(gap) for each in statement.gaps] == [True]


def test_a_place_that_is_a_template_is_a_gap() -> None:
    statement = Statement(None)
    check_template(table(), statement)
    assert statement.gaps == []
    check_template(table(prefix="${topic}/flights/"), statement)
    assert len(statement.gaps) == 1


def test_a_pattern_of_directories_has_a_star_for_each_value() -> None:
    assert directories(table(paths=HOURLY), str) == "dt=*/hour=*/carrier=*/"
    assert directories(table(paths=HOURLY), str.upper) == "DT=*/HOUR=*/CARRIER=*/"


def test_a_backslash_in_a_name_is_escaped() -> None:
    assert escaped_name("a`b\\") == "`a``b\\\\`"


def test_comments_are_on_one_line_each_above_the_statement() -> None:
    statement = Statement("SELECT 1;", ["a\nb"], ["c"])
    assert commented(statement, table(notes=("n",), gaps=("g",))) == (
        "-- flights: s3://lake/topics/flights/\n-- n\n-- a b\n-- NOT EXPRESSED: g\n-- NOT EXPRESSED: c\nSELECT 1;\n"
    )


def test_a_codec_that_the_engine_may_lack_is_a_gap() -> None:
    statement = Statement(None)
    check_codec(table(codec=CompressionCodec.BROTLI), "spark", statement)
    check_codec(table(), "spark", statement)
    assert len(statement.gaps) == 1


def test_records_that_are_no_lines_are_a_gap() -> None:
    statement = Statement(None)
    check_lines(table(output=OutputFormat.BYTES, separator="|"), "hive", statement)
    check_lines(json_table(), "hive", statement)
    assert statement.gaps == ["records are divided by '|': hive reads lines (format.bytes.separator)"]


def test_a_path_without_names_is_a_gap() -> None:
    statement = Statement(None)
    assert unnamed_paths(table(paths=HOURLY), "spark", statement) == HOURLY
    assert unnamed_paths(table(paths=UNNAMED), "spark", statement) == ()
    assert statement.gaps == ["spark has no columns for the path {}: its elements are not name=value"]
