"""PySpark's daemon, the process from which the Python workers of a JVM are forked, with the imports of a task.

With PySpark's own daemon each worker imports them again, which is most of the CPU time of its first task. The workers
share the memory of what was imported before the fork, as far as they don't change it. `spark.python.daemon.module`
names this module.

PySpark imports little before the fork, because a thread does not survive it. The only thread here belongs to jemalloc,
which restores its state in the child (pthread_atfork). Spark sets OMP_NUM_THREADS, so OpenBLAS has none.
"""

import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

_PRELOADED = ("pyspark.worker", "sink_job.spark.task", "sink_job.writer.preloaded")


def without_archives(path: Sequence[str]) -> list[str]:
    """The search path without Spark's zip files of PySpark and py4j, if they belong to an installed package.

    Spark puts them first. A zip file has no bytecode, so each process would compile PySpark again (0.5 s). In a package
    from PyPI, pyspark.zip is `pyspark/python/lib/pyspark.zip`, and py4j is a package beside `pyspark`.
    """
    found = [Path(entry) for entry in path if Path(entry).name == "pyspark.zip"]
    folders = {archive.parent for archive in found if _is_installed(archive)}
    return [entry for entry in path if Path(entry).parent not in folders or not entry.endswith(".zip")]


def _is_installed(archive: Path) -> bool:
    package = archive.parent.parent.parent
    searched = {Path(entry).resolve() for entry in sys.path}
    return (
        (package / "worker.py").is_file()
        and (package.parent / "py4j").is_dir()
        and package.parent.resolve() in searched
    )


def preload() -> None:
    """Imports what a task needs, and takes it out of the view of the garbage collector: the workers then leave these
    pages unchanged."""
    for module in _PRELOADED:
        import_module(module)
    gc.collect()
    gc.freeze()


def main() -> None:
    sys.path[:] = without_archives(sys.path)
    preload()
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
