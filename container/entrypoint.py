"""What a container of the job image runs: Spark's executor when Spark asks for one, else the command that is given.

Spark starts executors with the one argument `executor` and tells the rest by the environment; PySpark's package brings
no program that listens to that. The JVM takes this process's place.

Hadoop's client asks for the user's name and fails without one. Where the cluster assigns a uid that nobody has named,
as OpenShift does, libnss_wrapper gives it a name: the root file system, /etc/passwd with it, is read-only.
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
# What Spark sets for every executor, by the argument of the backend.
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
    """The process to become. `spark`: the folder of Spark. Raises SystemExit where Spark's variables are missing."""
    if list(arguments[:1]) != ["executor"]:
        return list(arguments)
    needed = ["SPARK_EXECUTOR_MEMORY", *_ARGUMENTS.values()]
    if missing := [name for name in needed if not environment.get(name)]:
        raise SystemExit(f"entrypoint: an executor is started by Spark, which sets {', '.join(missing)}")
    java = f"{environment['JAVA_HOME']}/bin/java" if environment.get("JAVA_HOME") else "java"
    memory = environment["SPARK_EXECUTOR_MEMORY"]
    class_path = ":".join(filter(None, [environment.get("SPARK_CLASSPATH"), *class_path_of(spark)]))
    told = [word for argument, name in _ARGUMENTS.items() for word in (argument, environment[name])]
    return [java, *java_options(environment), f"-Xms{memory}", f"-Xmx{memory}", "-cp", class_path, BACKEND, *told]


def class_path_of(spark: Path) -> list[str]:
    """Spark's own classes as its launcher names them for a driver: the archive of classes fits no other order."""
    first = sorted(spark.glob("jars/slf4j-api-*.jar"))[:1]
    return [f"{spark}/conf", *map(str, first), f"{spark}/jars/*"]


def java_options(environment: Mapping[str, str]) -> list[str]:
    """The options that Spark numbers as SPARK_JAVA_OPT_0 and on, in their order."""
    found = {int(match[1]): value for name, value in environment.items() if (match := _JAVA_OPTION.fullmatch(name))}
    return [found[number] for number in sorted(found)]


def naming(uid: int, gid: int, library: Path, folder: Path) -> dict[str, str]:
    """What gives the user a name in this process and all that it becomes; writes the file for it into `folder`."""
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
    """Where Spark is: $SPARK_HOME, else the PySpark package, which is not imported for that."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        return Path(os.environ["SPARK_HOME"])
    return Path(os.environ.get("SPARK_HOME") or Path(found.origin).parent)


def main() -> None:
    words = command(sys.argv[1:], os.environ, spark_home())
    if not words:
        raise SystemExit("entrypoint: no command is given")
    library = next(Path("/usr/lib").glob("*/libnss_wrapper.so"), None)
    if library is not None and not is_named(os.getuid()):
        os.environ.update(naming(os.getuid(), os.getgid(), library, Path(os.environ.get("HOME", "/tmp"))))
    os.execvp(words[0], words)


if __name__ == "__main__":
    main()
