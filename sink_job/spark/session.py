"""The Spark session of a sink that runs in one process tree: measured settings, quiet logs, nothing left behind."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession


@dataclass(frozen=True, kw_only=True)
class SparkSettings:
    """`cores`: tasks at a time (None: as many as this process may use). `heap` in bytes. `temp_dir`: where Spark spills and shuffles."""

    app_name: str
    jars: Sequence[Path]
    cores: int | None = None
    heap: int = 640 << 20
    temp_dir: Path | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def session(settings: SparkSettings) -> Iterator[SparkSession]:
    """A local session; on leaving, the JVM and every temporary file of it are gone.

    Raises ConfigurationError for a key of `settings.conf` that the sink owns.
    """
    raise NotImplementedError
    yield
