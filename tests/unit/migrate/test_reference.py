"""The tables of docs/migrating.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from sink_job.migrate.reference import TABLES, with_tables
from sink_job.migrate.table import key_table

PAGE = Path(__file__).resolve().parents[3] / "docs" / "migrating.md"


def test_the_page_has_the_tables_of_the_code() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_tables(page) == page  # python -m sink_job.migrate.reference docs/migrating.md
    assert [name for name in TABLES if f"<!-- table: {name} -->" not in page] == []


def test_every_key_is_in_a_table() -> None:
    text = "".join(table() for table in TABLES.values())
    assert [row.key for row in key_table().rows if f"{row.key}`" not in text] == []


def test_keys_with_the_same_field_and_note_share_a_row() -> None:
    assert "| `aws.access.key.id`, `aws.secret.access.key` | `s3.credentials`:" in TABLES["settings"]()


def test_an_unknown_table_is_a_defect() -> None:
    with pytest.raises(KeyError):
        with_tables("<!-- table: other -->\n<!-- end of table -->\n")


def test_the_page_shows_the_real_output_of_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    from sink_job.cli.main import main

    assert main(["convert", str(PAGE.parents[1] / "examples" / "kafka-connect" / "connector.json")]) == 0
    assert f"$ s3sink convert examples/kafka-connect/connector.json\n{capsys.readouterr().out}```" in PAGE.read_text()
