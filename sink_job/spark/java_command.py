"""The command of the driver's JVM, without the JVM in which Spark's launcher puts it together.

`spark-submit` runs two shell scripts and a JVM, which prints the command of the JVM that stays: 0.8 s of CPU time at
each start. For the sink's own properties the command is known (`AbstractCommandBuilder`, `SparkSubmitCommandBuilder`
and `JavaModuleOptions` of Spark 4.2, whose version is pinned). Where anything else decides about it, such as a
configuration folder, Spark's launcher runs as before.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

_OF_LAUNCHER: Final = (
    "SPARK_CONF_DIR",
    "SPARK_DIST_CLASSPATH",
    "SPARK_PREPEND_CLASSES",
    "SPARK_SUBMIT_OPTS",
    "SPARK_TESTING",
    "SPARK_MEM",
    "SPARK_DRIVER_MEMORY",
    "SPARK_ENV_LOADED",
    "HADOOP_CONF_DIR",
    "YARN_CONF_DIR",
)
"""Variables of the environment with which Spark's scripts or its launcher would write another command."""

_OTHERS: Final = (
    "spark.driver.defaultJavaOptions",
    "spark.driver.extraLibraryPath",
    "spark.launcher.",
)
"""Properties, or the beginnings of their names, that the command would depend on, and that the sink does not set."""

_OPENED: Final = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
_MODULES: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--add-modules=jdk.incubator.vector",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
)


class JavaCommand(NamedTuple):
    """The words of a command, and the variables that Spark's scripts add to its environment."""

    words: list[str]
    environment: dict[str, str]


def java_command(submit: Sequence[str], environment: Mapping[str, str]) -> JavaCommand | None:
    """The command that `spark-submit` with these words would run; None if Spark's launcher has to put it together.

    `submit`: the path of `spark-submit` in Spark's `bin`, `--conf` and `name=value` for each property, `pyspark-shell`.
    """
    home = Path(submit[0]).resolve().parents[1]
    java = _java(environment)
    properties = _properties(submit[1:])
    if java is None or properties is None or _is_configured(home, environment):
        return None
    options = _options(properties.get("spark.driver.extraJavaOptions", ""))
    if options is None or any(name.startswith(_OTHERS) for name in properties):
        return None
    jars = home / "jars"
    classes = [
        *filter(None, [properties.get("spark.driver.extraClassPath")]),
        str(home / "conf"),
        *map(str, sorted(jars.glob("slf4j-api-*.jar"))),
        str(jars / "*"),
    ]
    words = [
        java,
        "-cp",
        os.pathsep.join(classes),
        f"-Xmx{properties.get('spark.driver.memory', '1g')}",
        *options,
        *_MODULES,
        "org.apache.spark.deploy.SparkSubmit",
        *submit[1:],
    ]
    return JavaCommand(words, {"SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13", "PYTHONHASHSEED": "0"})


def _java(environment: Mapping[str, str]) -> str | None:
    if home := environment.get("JAVA_HOME"):
        return f"{home}/bin/java"
    return shutil.which("java", path=environment.get("PATH"))


def _properties(words: Sequence[str]) -> dict[str, str] | None:
    """The properties of `--conf`; None if there is any other word than these and `pyspark-shell`."""
    *pairs, last = words
    if last != "pyspark-shell" or len(pairs) % 2 or any(word != "--conf" for word in pairs[::2]):
        return None
    return dict(word.split("=", 1) for word in pairs[1::2])


def _is_configured(home: Path, environment: Mapping[str, str]) -> bool:
    return (home / "conf").exists() or any(environment.get(name) for name in _OF_LAUNCHER)


def _options(text: str) -> list[str] | None:
    """The words of JVM options. None for those that Spark's launcher rejects, and if a shell might divide them
    otherwise than the launcher."""
    if "\\" in text or "-Xmx" in text:
        return None
    try:
        return shlex.split(text)
    except ValueError:
        return None
