"""franz-go's srfake as a program: Confluent Schema Registry's REST API in memory, built by Go from `src/`.

Only the standard library is imported here: the program is built while packages are installed.
"""

from __future__ import annotations

from pathlib import Path

from devtools.go_tool import built_programs

_SOURCES = Path(__file__).parent / "src"
_NAME = "schema-registry"


def schema_registry_program() -> Path:
    """The program: from the cache, else built once. Raises `ServerFailedError` where that is impossible."""
    return built_programs(_NAME, _SOURCES, {_NAME: "."})[_NAME]
