"""The texts of `spec.tables`."""

from __future__ import annotations

import pytest

from sink_job.api.sections.tables_section import check_catalog_uri, check_table_name, check_warehouse


@pytest.mark.parametrize("text", ["lake.{topic}", "a.b.c_{topic}_d", "A.b1"])
def test_names_of_tables_have_a_namespace_and_plain_characters(text: str) -> None:
    check_table_name(text)


@pytest.mark.parametrize("text", ["", "a", ".a", "a.", "a..b", "a.b c", "a.{x}", "a.{topic", "a.ü", "a." + "b" * 255])
def test_other_names_of_tables_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="is"):
        check_table_name(text)


@pytest.mark.parametrize(
    "text", ["https://u:p@host", "https://u@host", "host", "https://a b", "https://[", "x:" + "a" * 2000]
)
def test_uris_without_a_scheme_or_with_a_login_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"is|contains"):
        check_catalog_uri(text)


@pytest.mark.parametrize("text", ["s3://lake/a b", "", "s3://lake/?x", "a" * 513])
def test_warehouses_with_other_characters_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="is not a warehouse"):
        check_warehouse(text)
