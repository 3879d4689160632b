"""Small Java classes that are compiled at run time, and a JVM for commands without a Spark session.

Loops over partitions run inside the JVM: a call from Python takes half a millisecond, so thousands of calls take
seconds. Such a loop is a Java source file beside the module that uses it. Janino, the compiler in Spark's distribution,
compiles it at the first use (0.4 s). So the project ships no binaries and needs no JDK. The compiled classes exist only
in the driver's JVM; classes for Spark's executors must be sent to them (`class_files`).
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from sink_job.api.errors import ConfigurationError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_JAVA = 8  # the newest class-file version that Janino supports
_compiled: WeakKeyDictionary[JavaGateway, dict[str, _Classes]] = WeakKeyDictionary()  # by class name
_lock = threading.Lock()


def new_instance(gateway: JavaGateway, source: Traversable, name: str, *others: Traversable) -> Any:
    """An instance (constructor without arguments) of the class `name`, compiled from `source` in the gateway's JVM.

    `others`: source files that `source` needs. Each class is compiled once per JVM. py4j caches methods by class name,
    so the name must be unique.
    """
    return _classes(gateway, name, source, *others).loader.loadClass(name).newInstance()


def class_files(gateway: JavaGateway, source: Traversable, name: str, *others: Traversable) -> Any:
    """The class files of `new_instance`: a Java map from file name to bytes. They remain in the JVM."""
    return _classes(gateway, name, source, *others).files


class _Classes(NamedTuple):
    """Compiled classes. `files`: a Java map from file name to bytes."""

    files: Any
    loader: Any


def _classes(gateway: JavaGateway, name: str, *sources: Traversable) -> _Classes:
    with _lock:
        compiled = _compiled.setdefault(gateway, {})
        if name not in compiled:
            compiled[name] = _compile(gateway, sources)
        return compiled[name]


def _compile(gateway: JavaGateway, sources: Sequence[Traversable]) -> _Classes:
    jvm = gateway.jvm
    util = jvm.org.codehaus.commons.compiler.util
    parent = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    texts = gateway.new_array(util.resource.Resource, len(sources))
    for number, source in enumerate(sources):
        texts[number] = util.resource.StringResource(source.name, source.read_text(encoding="utf-8"))
    files = jvm.java.util.HashMap()
    compiler = jvm.org.codehaus.janino.Compiler()
    compiler.setIClassLoader(jvm.org.codehaus.janino.ClassLoaderIClassLoader(parent))
    compiler.setClassFileCreator(util.resource.MapResourceCreator(files))
    compiler.setSourceVersion(_JAVA)
    compiler.setTargetVersion(_JAVA)
    compiler.compile(texts)
    finder = util.resource.MapResourceFinder(files)
    return _Classes(files, util.ResourceFinderClassLoader(finder, parent))


def plain_jvm(jars: Sequence[Path], *, heap: int = 128 << 20) -> JavaGateway:
    """A JVM whose class path has `jars` (kafka-clients) before PySpark's jars. It starts in half a second.

    `heap` is in bytes. The JVM ends after `gateway.shutdown()`, or with this process. Raises ConfigurationError if no
    Java is installed.
    """
    folder = spark_jars()
    py4j = next(folder.glob("py4j-*.jar"))
    port, token = launch_gateway(
        jarpath=str(py4j),
        classpath=os.pathsep.join([*map(str, jars), str(folder / "*")]),
        javaopts=[f"-Xmx{heap >> 20}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
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
