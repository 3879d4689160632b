"""A JVM for commands without a Spark session, and where Java and Spark's jars are."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from sink_job.api.errors import ConfigurationError


def plain_jvm(jars: Sequence[Path], *, options: Sequence[str] = (), heap: int = 128 << 20) -> JavaGateway:
    """A JVM whose class path has `jars` (kafka-clients) before PySpark's jars. It starts in half a second.

    `options`: further options of the JVM. `heap` is in bytes. The JVM ends after `gateway.shutdown()`, or with this
    process. Raises ConfigurationError if no Java is installed.
    """
    folder = spark_jars()
    py4j = next(folder.glob("py4j-*.jar"))
    port, token = launch_gateway(
        jarpath=str(py4j),
        classpath=os.pathsep.join([*map(str, jars), str(folder / "*")]),
        javaopts=[f"-Xmx{heap >> 20}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *options],
        java_path=java_binary(),
        die_on_exit=True,
        enable_auth=True,
    )
    return JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))


def spark_jars() -> Path:
    """The jars directory of the Spark in use: in `$SPARK_HOME`, else in the PySpark package."""
    return Path(os.environ.get("SPARK_HOME") or pyspark_file().parent) / "jars"


@cache
def pyspark_file() -> Path:
    """The file `__init__.py` of the installed PySpark, which is not imported: that takes most of a second."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")
    return Path(spec.origin)


def java_binary() -> str:
    """The path of the Java that Spark's scripts start: in JAVA_HOME, else in the PATH. Raises ConfigurationError."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if java is None:
        raise ConfigurationError(
            f"no java in {home}/bin: fix JAVA_HOME" if home else "no java in the PATH: install Java 17"
        )
    return java
