"""Downloads jars with Ivy, which PySpark includes. Maven is not needed.

Uses a single resolver, with Ivy's default repository or the mirror in `$S3SINK_MAVEN_ROOT`. Spark's default resolvers
search ~/.m2 first, and fail if a pom there has no jar. Poms and checksum files are not downloaded: dependencies are not
needed, and each jar has its pinned SHA-256.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sink_job.api.errors import TransientError
from sink_job.spark.jar_table import Jar

_SETTINGS = """<ivysettings>
  <settings defaultResolver="public"/>
  <resolvers><ibiblio name="public" m2compatible="true" usepoms="false" checksums=""{root}/></resolvers>
</ivysettings>
"""


def fetch(jars: Sequence[Jar], folder: Path) -> None:
    """Downloads `jars`, without their dependencies, to `folder` as `Jar.file_name`. Does not verify checksums.

    `$S3SINK_MAVEN_ROOT` is the URL of a mirror. Raises `TransientError` with Ivy's message if a download fails.
    """
    with tempfile.TemporaryDirectory(prefix=".ivy-", dir=folder) as name:
        work = Path(name)
        for path in _resolve(jars, work):
            # Ivy names a downloaded file <group>_<artifact>-<version>.jar.
            for jar in jars:
                if path.name == f"{jar.group}_{jar.file_name}":
                    shutil.move(path, folder / jar.file_name)


def _resolve(jars: Sequence[Jar], work: Path) -> list[Path]:
    from py4j.protocol import Py4JJavaError

    from sink_job.spark.pyspark_core import launch_gateway

    mirror = os.environ.get("S3SINK_MAVEN_ROOT")
    settings = work / "settings.xml"
    settings.write_text(_SETTINGS.format(root=f' root="{mirror}"' if mirror else ""))
    log = work / "ivy.log"
    gateway = launch_gateway(popen_kwargs={"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL})
    try:
        jvm: Any = gateway.jvm
        none = getattr(jvm.scala, "None$").__getattr__("MODULE$")
        out = jvm.java.io.PrintStream(str(log))
        utils = jvm.org.apache.spark.util.MavenUtils
        ivy = utils.loadIvySettings(settings.as_uri(), none, jvm.scala.Some(str(work)), out)
        nothing = jvm.scala.jdk.javaapi.CollectionConverters.asScala(jvm.java.util.ArrayList()).toSeq()
        coordinates = ",".join(jar.coordinates for jar in jars)
        try:
            found = utils.resolveMavenCoordinates(coordinates, ivy, none, False, nothing, False, out)
        except Py4JJavaError as error:
            raise TransientError(f"cannot download {coordinates}: {_last_lines(log)}") from error
        return [Path(found.apply(i)) for i in range(found.size())]
    finally:
        gateway.shutdown()
        if gateway.proc.stdin:
            gateway.proc.stdin.close()  # the JVM exits when its standard input is closed
        gateway.proc.wait(timeout=30)


def _last_lines(log: Path) -> str:
    lines = [line.strip(" \t:") for line in log.read_text(errors="replace").splitlines() if line.strip(" \t:")]
    return " / ".join(lines[-4:]) or "no reason given"
