"""PySpark's core without Spark SQL, which no sink uses: modules of the driver import PySpark's classes from here.

`import pyspark` imports `pyspark.sql` for names of former versions (0.35 s of CPU time). That registers converters for
the arguments of calls to the JVM, of which the one for NumPy imports `pyspark.testing` and, if it is installed, pandas
at the first call (0.6 s, 40 MB). `pyspark.sql` can still be imported afterwards.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

_SQL = "pyspark.sql"
_NAMES = ("SQLContext", "HiveContext", "Row")


@contextmanager
def _without_sql() -> Iterator[None]:
    """Lets `import pyspark` find an empty `pyspark.sql`, if none of them is imported yet."""
    if "pyspark" in sys.modules:
        yield
        return
    empty = ModuleType(_SQL)
    empty.__dict__.update(dict.fromkeys(_NAMES))
    sys.modules[_SQL] = empty
    try:
        yield
    finally:
        if sys.modules.get(_SQL) is empty:
            del sys.modules[_SQL]
        for name in _NAMES:
            sys.modules["pyspark"].__dict__.pop(name, None)


with _without_sql():
    from pyspark import RDD, Broadcast, SparkConf, SparkContext, java_gateway
    from pyspark.java_gateway import launch_gateway
    from pyspark.serializers import NoOpSerializer

__all__ = ["RDD", "Broadcast", "NoOpSerializer", "SparkConf", "SparkContext", "java_gateway", "launch_gateway"]
