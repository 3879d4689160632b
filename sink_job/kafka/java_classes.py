"""Small Java classes of the sink, which are compiled once per machine.

Loops over partitions run inside the JVM: a call from Python takes half a millisecond, so thousands of calls take
seconds. Such a loop is a Java source file beside the module that uses it. Janino, the compiler in Spark's distribution,
compiles it at the first use (0.2 to 1.3 s of CPU time), and the classes are kept in the cache as a jar. So the project
ships no binaries and needs no JDK. A cache that cannot be written makes each start compile them again.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary
from zipfile import ZipFile

from py4j.java_gateway import JavaGateway

from sink_job.engine.cache import cache_dir

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_JAVA = 8  # the newest class-file version that Janino supports
_loaders: WeakKeyDictionary[JavaGateway, dict[Path, Any]] = WeakKeyDictionary()  # by jar
_lock = threading.Lock()


def new_instance(gateway: JavaGateway, source: Traversable, name: str, *others: Traversable) -> Any:
    """An instance (constructor without arguments) of the class `name`, compiled from `source`, in the gateway's JVM.

    `others`: source files that `source` needs. py4j caches methods by class name, so the name must be unique.
    """
    sources = (source, *others)
    jar = _jar_path(name, sources)
    with _lock:
        loaders = _loaders.setdefault(gateway, {})
        if jar not in loaders:
            loaders[jar] = _jar_loader(gateway, jar) if jar.exists() else _compiled_loader(gateway, sources, jar)
        return loaders[jar].loadClass(name).newInstance()


def class_jar(gateway: JavaGateway, source: Traversable, name: str, *others: Traversable, folder: Path) -> Path:
    """A jar with the classes of `new_instance`, for Spark's executors. It is written to `folder` if the cache has none,
    as it cannot be written."""
    sources = (source, *others)
    jar = _jar_path(name, sources)
    if jar.exists():
        return jar
    return _write(_compile(gateway, sources), folder / jar.name)


def _jar_path(name: str, sources: Sequence[Traversable]) -> Path:
    """The jar in the cache for these sources and the Spark against which they are compiled. It may not exist."""
    texts = [str(_JAVA), version("pyspark"), *(source.read_text(encoding="utf-8") for source in sources)]
    digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
    return cache_dir() / "jvm" / f"{name}-{digest}.jar"


def _jar_loader(gateway: JavaGateway, jar: Path) -> Any:
    jvm = gateway.jvm
    urls = gateway.new_array(jvm.java.net.URL, 1)
    urls[0] = jvm.java.io.File(str(jar)).toURI().toURL()
    return jvm.java.net.URLClassLoader(urls, _parent(gateway))


def _compiled_loader(gateway: JavaGateway, sources: Sequence[Traversable], jar: Path) -> Any:
    files = _compile(gateway, sources)
    with suppress(OSError):  # the cache of an image is read-only
        jar.parent.mkdir(parents=True, exist_ok=True)
        _write(files, jar)
        return _jar_loader(gateway, jar)
    util = gateway.jvm.org.codehaus.commons.compiler.util
    return util.ResourceFinderClassLoader(util.resource.MapResourceFinder(files), _parent(gateway))


def _compile(gateway: JavaGateway, sources: Sequence[Traversable]) -> Any:
    """A Java map from the name of each class file to its bytes."""
    jvm = gateway.jvm
    util = jvm.org.codehaus.commons.compiler.util
    texts = gateway.new_array(util.resource.Resource, len(sources))
    for number, source in enumerate(sources):
        texts[number] = util.resource.StringResource(source.name, source.read_text(encoding="utf-8"))
    files = jvm.java.util.HashMap()
    compiler = jvm.org.codehaus.janino.Compiler()
    compiler.setIClassLoader(jvm.org.codehaus.janino.ClassLoaderIClassLoader(_parent(gateway)))
    compiler.setClassFileCreator(util.resource.MapResourceCreator(files))
    compiler.setSourceVersion(_JAVA)
    compiler.setTargetVersion(_JAVA)
    compiler.compile(texts)
    return files


def _parent(gateway: JavaGateway) -> Any:
    return gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()


def _write(files: Mapping[str, bytes], jar: Path) -> Path:
    """Writes the jar at once, because several processes can write it. Raises OSError."""
    new = jar.with_suffix(f".{os.getpid()}")
    with ZipFile(new, "w") as archive:
        for name in sorted(files):
            archive.writestr(name, bytes(files[name]))
    return new.replace(jar)
