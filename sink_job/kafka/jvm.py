"""Small Java classes that are compiled at run time, and a JVM for commands without a Spark session.

Loops over partitions run inside the JVM: a call from Python takes half a millisecond, so thousands of calls take
seconds. Such a loop is a Java source file beside the module that uses it. Janino, the compiler in Spark's distribution,
compiles it at the first use (0.4 s). So the project ships no binaries and needs no JDK. The compiled classes exist only
in the driver's JVM; classes for Spark's executors must be sent to them (`bytecodes`).
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from sink_job.api.errors import ConfigurationError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_JAVA = 8  # the newest class-file version that Janino supports
_compiled: WeakKeyDictionary[JavaGateway, dict[str, Any]] = WeakKeyDictionary()  # compilers by class name
_lock = threading.Lock()


def new_instance(gateway: JavaGateway, source: Traversable, name: str) -> Any:
    """An instance (constructor without arguments) of the class `name`, compiled from `source` in the gateway's JVM.

    Each class is compiled once per JVM. py4j caches methods by class name, so the name must be unique.
    """
    return _compiler(gateway, source, name).getClassLoader().loadClass(name).newInstance()


def bytecodes(gateway: JavaGateway, source: Traversable, name: str) -> Any:
    """The class files of the source file of `name`: a Java map from class name to bytes. They remain in the JVM."""
    return _compiler(gateway, source, name).getBytecodes()


def _compiler(gateway: JavaGateway, source: Traversable, name: str) -> Any:
    with _lock:
        compilers = _compiled.setdefault(gateway, {})
        if name not in compilers:
            compilers[name] = _compile(gateway, source.read_text(encoding="utf-8"))
        return compilers[name]


def _compile(gateway: JavaGateway, source: str) -> Any:
    compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.setSourceVersion(_JAVA)
    compiler.setTargetVersion(_JAVA)
    compiler.cook(source)
    return compiler


def plain_jvm(jars: Sequence[Path], *, heap: int = 128 << 20) -> JavaGateway:
    """A JVM whose class path has `jars` (kafka-clients) before PySpark's jars. It starts in half a second.

    `heap` is in bytes. The JVM ends after `gateway.shutdown()`, or with this process. Raises ConfigurationError if no
    Java is installed.
    """
    spark_jars = _pyspark_jars()
    py4j = next(spark_jars.glob("py4j-*.jar"))
    port, token = launch_gateway(
        jarpath=str(py4j),
        classpath=os.pathsep.join([*map(str, jars), str(spark_jars / "*")]),
        javaopts=[f"-Xmx{heap >> 20}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
        java_path=java_binary(),
        die_on_exit=True,
        enable_auth=True,
    )
    return JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))


def _pyspark_jars() -> Path:
    import pyspark  # only for its path

    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "jars"


def java_binary() -> str:
    """The path of the Java that Spark's scripts start: in JAVA_HOME, else in the PATH. Raises ConfigurationError."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if java is None:
        raise ConfigurationError(
            f"no java in {home}/bin: fix JAVA_HOME" if home else "no java in the PATH: install Java 17"
        )
    return java
