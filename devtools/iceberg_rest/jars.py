"""The jars of Iceberg's REST server for tests, in the cache: pinned, fetched by Ivy, which PySpark includes.

Hadoop's client comes from PySpark's jars.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from devtools.processes import ServerFailedError
from sink_job.engine.cache import cache_dir
from sink_job.kafka.jvm import java_binary, spark_jars

_TABLE: Final = """
    com.fasterxml.jackson.core:jackson-annotations:2.21
        53ca085f4a150f703f49e1aabd935bd03b43e1ea3d55d135438292af22cef56b
    com.fasterxml.jackson.core:jackson-core:2.21.3
        baf8b739e9d9b93bcdb33f25046bfdb8dbd74c97de2a8698539fbe0c7eeac0bb
    com.fasterxml.jackson.core:jackson-databind:2.21.3
        f397563d8e67630c10cab8c2334ca0e55af832fa3ebde160a379c2c96d43bf25
    com.github.ben-manes.caffeine:caffeine:2.9.3
        1e0a7bbef1dd791653143f3f05d0e489934bf5481e58a87c9e619cd46b68729b
    com.google.errorprone:error_prone_annotations:2.10.0
        a249d4d25dfb86d41e6c82fc335df580189f0c9feeabdc53233fc1e5060724a1
    commons-codec:commons-codec:1.19.0
        5c3881e4f556855e9c532927ee0c9dfde94cc66760d5805c031a59887070af5f
    commons-io:commons-io:2.20.0
        df90bba0fe3cb586b7f164e78fe8f8f4da3f2dd5c27fa645f888100ccc25dd72
    dev.failsafe:failsafe:3.3.2
        2c5dc879a6dac7ea3a7b29d795e27bd49b8e7908b05c2f3e56053c19d79850f5
    io.airlift:aircompressor:2.0.3
        b86bb66f610079e0bf790d62e2ff68853eb0dc4748a6d68ae28bce92b68094aa
    jakarta.servlet:jakarta.servlet-api:6.0.0
        c034eb1afb158987dbb53a5fea0cadf611c8dae8daadd59c44d9d5ab70129cef
    org.apache.avro:avro:1.12.1
        72600f057bfbe2efe35fa55433e7756d45667dc938934be38a6e2be368aca237
    org.apache.commons:commons-compress:1.28.0
        e1522945218456f3649a39bc4afd70ce4bd466221519dba7d378f2141a4642ca
    org.apache.commons:commons-lang3:3.18.0
        4eeeae8d20c078abb64b015ec158add383ac581571cddc45c68f0c9ae0230720
    org.apache.httpcomponents.client5:httpclient5:5.6.1
        1e3d8444c3c27772e4b9d42a790f06b3345a8ece4fd16d00981f2f2460e1e772
    org.apache.httpcomponents.core5:httpcore5-h2:5.4
        2e0f4ace15db2d1609c2b06eca6012e7582afe4a99ad8d15073f62dd8edb3460
    org.apache.httpcomponents.core5:httpcore5:5.4
        cec2981fa7f520efb63f0787c24f10af2679e31f9f75c448c4dde40a3ae8100d
    org.apache.iceberg:iceberg-api:1.11.0
        f00675a12ceb6d833bb9c22024823a3e7afdedf7abcefe34719f45b0d211995a
    org.apache.iceberg:iceberg-aws-bundle:1.11.0
        38f01da7e96850cdd05e6616d758b77b43314b712a8808e3f9a824d56976162f
    org.apache.iceberg:iceberg-aws:1.11.0
        4cfe4a7ba3a4fb247a29e60c614678c3b7a1e9b4b91f54e0ca3406419c9338f0
    org.apache.iceberg:iceberg-bundled-guava:1.11.0
        396d48d93ef5735f2ddef0cf9b3d6968ebd67b64b5cfe753d41c429d3f46a2a1
    org.apache.iceberg:iceberg-common:1.11.0
        b2835d00db7c92bdfa728123ad7cdcb488e2f2805c1c51fb9ae94e8bd203bd7d
    org.apache.iceberg:iceberg-core:1.11.0
        53b9eb7a8c34fb9958ea7d9a4d19ba5bc96f592d0f05e8625b0778c70b1f0090
    org.apache.iceberg:iceberg-core:1.11.0:tests
        4284719a5f0eb7db01e9f784a0ed4ca8bacf7d6f9951924143afc083428d8be3
    org.apache.iceberg:iceberg-open-api:1.11.0:test-fixtures
        b0aa8636d88c24976d552ac9b3075a1315dc1ccd4fa6ed95b365901842664316
    org.checkerframework:checker-qual:3.19.0
        a827c49183f3a632277d27a0a4673686cb341507447b9d570261094bd748aa68
    org.eclipse.jetty.compression:jetty-compression-common:12.1.5
        f9eaa16477daaf7ff41e5489e6d41268c42cd58888396762ef093ace819ab683
    org.eclipse.jetty.compression:jetty-compression-gzip:12.1.5
        f9a3b082a4eeb0013226c9fd9e9dd60f77c1bf93a87d95e741be9553e769c7b5
    org.eclipse.jetty.compression:jetty-compression-server:12.1.5
        f84f42035fec0df6815cdbff80cf324db99d0ca72d9c4922c1f7a94c7dda4e17
    org.eclipse.jetty.ee10:jetty-ee10-servlet:12.1.5
        ffd35e86226246c8a57ade503fae733b37e687844c726f63f02c6e5fa9220ace
    org.eclipse.jetty:jetty-http:12.1.5
        20a6f605e802789990855b81f75dadfa8ab152e81713080c295c333d7cce7daa
    org.eclipse.jetty:jetty-io:12.1.5
        9c388018412d9bd9a1b9c35ca373e25fd845706f82549f2a7039ae9fefb45e69
    org.eclipse.jetty:jetty-security:12.1.5
        9972b67058ad7a58a0517cd14502e67e2e1071c74b00f51c6487518f0bfdc02e
    org.eclipse.jetty:jetty-server:12.1.5
        e0964741f132de3bdb48ca59c4b9bb8555f966d46b660c8c88f1e157cedbaa02
    org.eclipse.jetty:jetty-session:12.1.5
        ebe4f30c6fe7656294d884e1dc8eea4c77b6c861e3c010847a76fd78164ae166
    org.eclipse.jetty:jetty-util:12.1.5
        3b165498c1409db1a2463c367250c9225635cf68cd4529fbb0610324942bbc07
    org.roaringbitmap:RoaringBitmap:1.6.14
        78ae7a6261b5b03f53b8db991047d06959cfadbd0b08af54bd95dda40af9acba
    org.slf4j:slf4j-api:2.0.17
        7b751d952061954d5abfed7181c1f645d336091b679891591d63329c622eb832
    org.slf4j:slf4j-simple:2.0.17
        ddfea59ac074c6d3e24ac2c38622d2d963895e17f70b38ed4bdae4d780be6964
    org.xerial:sqlite-jdbc:3.51.0.0
        b0ca8cf80d6eff80ee18aa6e8a6aa72f697af0bf9c822c4b2ad9e35c7a3146e1
"""
"""`group:artifact:version[:classifier]` and SHA-256, as iceberg-open-api:1.11.0:test-fixtures needs them."""

_SETTINGS: Final = """<ivysettings>
  <settings defaultResolver="public"/><caches defaultCacheDir={cache}/>
  <resolvers><ibiblio name="public" m2compatible="true" usepoms="false" checksums=""{root}/></resolvers>
</ivysettings>
"""
_TIMEOUT_S: Final = 600


@dataclass(frozen=True)
class _Jar:
    group: str
    artifact: str
    version: str
    classifier: str
    sha256: str

    @property
    def file_name(self) -> str:
        return "-".join(filter(None, (self.artifact, self.version, self.classifier))) + ".jar"

    @property
    def dependency(self) -> str:
        """As an element of Ivy's file of dependencies."""
        classifier = f" m:classifier={quoteattr(self.classifier)}" if self.classifier else ""
        names = f"org={quoteattr(self.group)} name={quoteattr(self.artifact)} rev={quoteattr(self.version)}"
        artifact = f'<artifact name={quoteattr(self.artifact)} type="jar" ext="jar"{classifier}/>'
        return f'<dependency {names} conf="default" transitive="false">{artifact}</dependency>'


def _jars() -> list[_Jar]:
    words = iter(_TABLE.split())
    found = []
    for coordinates, sha256 in zip(words, words, strict=True):
        group, artifact, version, *classifier = coordinates.split(":")
        found.append(_Jar(group, artifact, version, "".join(classifier), sha256))
    return found


def rest_jars() -> list[Path]:
    """The class path of the server. Raises ServerFailedError where the jars cannot be fetched."""
    folder = cache_dir() / f"iceberg-rest-{hashlib.sha256(_TABLE.encode()).hexdigest()[:12]}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="iceberg-rest-") as work:
            _fetch(Path(work))
            with contextlib.suppress(OSError):  # another process was first; its copy is the same
                Path(work, "jars").rename(folder)
    hadoop = sorted(spark_jars().glob("hadoop-client-*.jar"))
    return [*sorted(folder.glob("*.jar")), *hadoop]


def _fetch(work: Path) -> None:
    jars = _jars()
    mirror = os.environ.get("S3SINK_MAVEN_ROOT")
    root = f" root={quoteattr(mirror)}" if mirror else ""
    (work / "settings.xml").write_text(_SETTINGS.format(cache=quoteattr(str(work / "cache")), root=root))
    # two artifacts of one module are in one element: Ivy takes the last of several for a module
    modules: dict[tuple[str, str, str], list[_Jar]] = {}
    for jar in jars:
        modules.setdefault((jar.group, jar.artifact, jar.version), []).append(jar)
    dependencies = "".join(_joined(each) for each in modules.values())
    (work / "ivy.xml").write_text(
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven"><info organisation="s3sink" module="m"/>'
        f'<configurations><conf name="default"/></configurations><dependencies>{dependencies}</dependencies>'
        "</ivy-module>"
    )
    (ivy,) = spark_jars().glob("ivy-*.jar")
    pattern = f"{work}/jars/[artifact]-[revision](-[classifier]).[ext]"
    words = [java_binary(), "-cp", str(ivy), "org.apache.ivy.Main", "-settings", f"{work}/settings.xml"]
    words += ["-ivy", f"{work}/ivy.xml", "-retrieve", pattern]
    done = subprocess.run(words, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    wrong = [jar.file_name for jar in jars if not _is_pinned(work / "jars" / jar.file_name, jar)]
    if done.returncode or wrong:
        raise ServerFailedError(f"Ivy has not fetched {', '.join(wrong)}:\n{done.stdout[-4000:]}")


def _joined(jars: list[_Jar]) -> str:
    """One element for the artifacts of a module."""
    head, _, _ = jars[0].dependency.partition("<artifact")
    artifacts = (each.dependency.partition(">")[2].removesuffix("</dependency>") for each in jars)
    return f"{head}{''.join(artifacts)}</dependency>"


def _is_pinned(path: Path, jar: _Jar) -> bool:
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == jar.sha256
