"""PySpark's daemon, the process from which the Python workers of a JVM are forked, with the imports of a task.

With PySpark's own daemon each worker imports them again, which is most of the CPU time of its first task. Spark ends a
worker that was idle for a minute, so most workers of a quiet sink are new. The workers share the memory of what was
imported before the fork, as far as they don't change it. `spark.python.daemon.module` names this module.

PySpark imports little before the fork, because a thread does not survive it. The only thread here belongs to jemalloc,
which restores its state in the child (pthread_atfork). Spark sets OMP_NUM_THREADS, so OpenBLAS has none.
"""

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from pathlib import Path

MODULES_VARIABLE = "S3SINK_TASK_MODULES"
"""Environment variable with the names of the modules that the sink's tasks need, separated by spaces."""

_PRELOADED = ("pyspark.worker", "sink_job.spark.task", "sink_job.writer.preloaded", "encodings.idna")


def without_archives(path: Sequence[str]) -> list[str]:
    """The search path without Spark's zip files of PySpark and py4j and its jar, if they are of an installed package.

    Spark puts them first. A zip file has no bytecode, so each process would compile PySpark again (0.5 s), and each
    worker reads the directories of all archives once (0.1 s). In a package from PyPI, pyspark.zip is
    `pyspark/python/lib/pyspark.zip`, the jar is in `pyspark/jars`, and py4j is a package beside `pyspark`.
    """
    found = [Path(entry) for entry in path if Path(entry).name == "pyspark.zip"]
    folders = {archive.parent for archive in found if _is_installed(archive)}
    folders |= {folder.parent.parent / "jars" for folder in folders}
    return [entry for entry in path if Path(entry).parent not in folders or not entry.endswith((".zip", ".jar"))]


def _is_installed(archive: Path) -> bool:
    package = archive.parent.parent.parent
    searched = {Path(entry).resolve() for entry in sys.path}
    return (
        (package / "worker.py").is_file()
        and (package.parent / "py4j").is_dir()
        and package.parent.resolve() in searched
    )


def forget_archives() -> None:
    """Removes Spark's archives from the search path, and what was read of them: a worker reads the directory of each
    known archive again before its first task, also of one that is not searched any more."""
    kept = without_archives(sys.path)
    removed = tuple(f"{entry}/" for entry in sys.path if entry not in kept)
    sys.path[:] = kept
    for entry in list(sys.path_importer_cache):
        if f"{entry}/".startswith(removed):
            del sys.path_importer_cache[entry]


def preload() -> None:
    """Imports what a task needs, and takes it out of the view of the garbage collector: the workers then leave these
    pages unchanged."""
    for module in (*_PRELOADED, *os.environ.get(MODULES_VARIABLE, "").split()):
        import_module(module)
    leave_out_pandas()
    gc.collect()
    gc.freeze()


def leave_out_pandas() -> None:
    """Lets PyArrow take pandas for missing. It imports pandas when it first converts a list (0.7 s and 40 MB in each
    worker), to recognize pandas' own types, which no task has. Other code can import pandas."""
    finder = _WithoutPandas()
    sys.meta_path.insert(0, finder)
    try:
        import_module("pyarrow").array([0])
    finally:
        sys.meta_path.remove(finder)


class _WithoutPandas(MetaPathFinder):
    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is left out", name=fullname)


def main() -> None:
    forget_archives()
    preload()
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
