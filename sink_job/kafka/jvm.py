"""Java from Python: small classes compiled in the JVM at hand, and a JVM where there is no Spark session.

What loops over partitions has to run inside the JVM: a call from Python costs half a millisecond, thousands of them
seconds. Such a loop is a Java source file beside the module that uses it, compiled when it is first needed by Janino,
the compiler that Spark brings along (0.4 s); so the project ships no binaries and needs no JDK. What runs in Spark's
executors has to be sent to them (`bytecodes`), as compiled classes are known to the driver's JVM alone.
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

_JAVA = 8  # the newest language level that Janino writes class files for
_compiled: WeakKeyDictionary[JavaGateway, dict[str, Any]] = WeakKeyDictionary()  # compilers, by a class's name
_lock = threading.Lock()


def new_instance(gateway: JavaGateway, source: Traversable, name: str) -> Any:
    """An instance (constructor without arguments) of the class `name`, compiled from `source` in the gateway's JVM.

    Each class is compiled once a JVM: py4j remembers methods by the class's name, so there must be one of that name.
    """
    return _compiler(gateway, source, name).getClassLoader().loadClass(name).newInstance()


def bytecodes(gateway: JavaGateway, source: Traversable, name: str) -> Any:
    """The class files of the source file of `name`: a Java map from a class's name to bytes, which stay in the JVM."""
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
    """A JVM with `jars` (kafka-clients) in front of PySpark's own on its class path; it is up in half a second.

    `heap` in bytes. It ends with `gateway.shutdown()`, or with this process. Raises ConfigurationError without a Java.
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
    import pyspark  # only for where it lies: importing it costs nothing here

    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "jars"


def java_binary() -> str:
    """The Java that Spark's own scripts start: of JAVA_HOME, else of the PATH. Raises ConfigurationError."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if java is None:
        raise ConfigurationError(
            f"no java in {home}/bin (JAVA_HOME)" if home else "no java on the PATH; install Java 17"
        )
    return java
