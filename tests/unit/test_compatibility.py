"""The rules of docs/compatibility.md: what may change only together with a number or with an entry in the changelog."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import pytest

from sink_job.api.enums import ConverterType, OutputFormat
from sink_job.api.spec import ObjectSettings
from sink_job.codecs.formats import selecting_libraries, with_library
from tests.golden.__main__ import OBJECTS, ROOT, STORED_TYPES, is_described
from tests.golden.objects import CASES, objects_of
from tests.golden.stored_types import FILES, fingerprint
from tests.unit.rotation.settings import object_settings

UPDATE: Final = 'make golden ENTRY="part of the entry in CHANGELOG.md"'
GOLDEN: Final[dict[str, Any]] = json.loads(OBJECTS.read_text())

DECIDING: Final = (
    *("arrow", "avro", "codecs", "connect", "converters", "envelope", "formats", "json"),
    *("parquet", "partitioning", "plain", "protobuf", "records", "rotation", "writer"),
)
"""The packages that accept values, compute paths and keys, and encode rows."""

NAMES: Final = {"google": ["protobuf"], "backports": ["zstd"], "compression": ["zstd"]}
"""Of `google` only protobuf is used; the other modules contain a library with a version of its own."""

WITHOUT_EFFECT: Final = {
    "cachetools": "keeps results, computes none",
    "grpcio-tools": "compiles the text of a schema; the reader of messages decides about values",
}
"""Libraries of these packages that need not be among the settings of an object, and why."""


@pytest.mark.parametrize("name", CASES)
def test_the_same_records_and_manifest_have_the_same_keys_and_bytes(name: str) -> None:
    assert objects_of(name) == GOLDEN["objects"][name], f"describe the change in CHANGELOG.md, then run {UPDATE}"


def test_the_last_change_of_keys_or_bytes_is_in_the_changelog() -> None:
    assert is_described(GOLDEN["entry"])


@pytest.mark.parametrize("name", FILES)
def test_the_type_of_a_file_of_the_ledger_changes_only_with_the_number_of_its_format(name: str) -> None:
    kind, number = FILES[name]
    recorded = json.loads(STORED_TYPES.read_text())[name]
    assert recorded == {"format": number, "type": fingerprint(kind)}, (
        f"increase FORMAT of {kind.__module__}, describe the change in CHANGELOG.md, then run {UPDATE}"
    )


def test_every_library_that_decides_about_values_paths_or_bytes_belongs_to_the_settings_of_an_object() -> None:
    recorded = {name.partition(" ")[0] for settings in _all_settings() for name in _libraries(settings)}
    packages = {**metadata.packages_distributions(), **NAMES}
    deciding = {packages[module][0] for module in _imported_modules()}
    assert deciding - recorded - WITHOUT_EFFECT.keys() == set()


def _all_settings() -> Iterator[ObjectSettings]:
    for converter in ConverterType:
        sections = object_settings(partitioner={"type": "Hourly", "timezone": "UTC", "locale": "en"})
        yield sections.model_copy(update={"format": sections.format.model_copy(update={"converter": converter})})
    for output, compression in ((OutputFormat.JSON, "Gzip"), (OutputFormat.JSON, "Zstd"), (OutputFormat.PARQUET, None)):
        chosen = {"compression": {"codec": compression}} if compression else {}
        yield object_settings(format={"output": output.value, **chosen})


def _libraries(settings: ObjectSettings) -> tuple[str, ...]:
    return (*selecting_libraries(settings), with_library(settings).library or "")


def _imported_modules() -> set[str]:
    """The first words of the names of all modules that the deciding packages import, without Python's own."""
    folders = [ROOT / "sink_job" / package for package in DECIDING]
    assert all(folder.is_dir() for folder in folders)
    files = [file for folder in folders for file in folder.rglob("*.py")]
    names = {name.partition(".")[0] for file in files for name in _imports(file)}
    return names - set(sys.stdlib_module_names) - {"sink_job"}


def _imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
