"""The entry point of the job image: a Spark executor if Spark requests one, otherwise the given command.

Spark starts executors with the single argument `executor` and passes the rest in the environment. PySpark's package has
no program for this. The JVM replaces this process.

Hadoop's client reads the user's name and fails without one. A cluster such as OpenShift assigns a uid without a name.
The root file system with /etc/passwd is read-only, so libnss_wrapper provides the name.
"""

from __future__ import annotations

import os
import pwd
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
# Variables that Spark sets for every executor, by the argument of the backend.
_ARGUMENTS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}
_NAME = "s3sink"
_JAVA_OPTION = re.compile(r"SPARK_JAVA_OPT_(\d+)")


def command(arguments: Sequence[str], environment: Mapping[str, str], spark: Path) -> list[str]:
    """The command to execute. `spark` is the folder of Spark. Raises SystemExit if variables of Spark are missing."""
    if list(arguments[:1]) != ["executor"]:
        return list(arguments)
    needed = ["SPARK_EXECUTOR_MEMORY", *_ARGUMENTS.values()]
    if missing := [name for name in needed if not environment.get(name)]:
        raise SystemExit(
            f"entrypoint: missing variables: {', '.join(missing)}. Spark sets them when it starts an executor"
        )
    java = f"{environment['JAVA_HOME']}/bin/java" if environment.get("JAVA_HOME") else "java"
    memory = environment["SPARK_EXECUTOR_MEMORY"]
    class_path = ":".join(filter(None, [environment.get("SPARK_CLASSPATH"), *class_path_of(spark)]))
    backend = [word for argument, name in _ARGUMENTS.items() for word in (argument, environment[name])]
    return [java, *java_options(environment), f"-Xms{memory}", f"-Xmx{memory}", "-cp", class_path, BACKEND, *backend]


def class_path_of(spark: Path) -> list[str]:
    """The class path in the order of Spark's launcher for drivers; the CDS archive requires this order."""
    first = sorted(spark.glob("jars/slf4j-api-*.jar"))[:1]
    return [f"{spark}/conf", *map(str, first), f"{spark}/jars/*"]


def java_options(environment: Mapping[str, str]) -> list[str]:
    """The options in SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, …, ordered by number."""
    found = {int(match[1]): value for name, value in environment.items() if (match := _JAVA_OPTION.fullmatch(name))}
    return [found[number] for number in sorted(found)]


def naming(uid: int, gid: int, library: Path, folder: Path) -> dict[str, str]:
    """Environment variables that give the user a name; writes their passwd file into `folder`."""
    users = folder / f".passwd-{uid}"
    users.write_text(f"{_NAME}:x:{uid}:{gid}::{folder}:/usr/sbin/nologin\n")
    return {"LD_PRELOAD": str(library), "NSS_WRAPPER_PASSWD": str(users), "NSS_WRAPPER_GROUP": "/etc/group"}


def is_named(uid: int) -> bool:
    """Whether this user has a name."""
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def spark_home() -> Path:
    """The folder of Spark: $SPARK_HOME, or the PySpark package, which is not imported."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        return Path(os.environ["SPARK_HOME"])
    return Path(os.environ.get("SPARK_HOME") or Path(found.origin).parent)


def main() -> None:
    words = command(sys.argv[1:], os.environ, spark_home())
    if not words:
        raise SystemExit("entrypoint: missing command; pass one, such as `s3sink run MANIFEST`")
    library = next(Path("/usr/lib").glob("*/libnss_wrapper.so"), None)
    if library is not None and not is_named(os.getuid()):
        os.environ.update(naming(os.getuid(), os.getgid(), library, Path(os.environ.get("HOME", "/tmp"))))
    os.execvp(words[0], words)


if __name__ == "__main__":
    main()
