"""The images of the project's Dockerfile, built by what this machine has: a Docker engine that answers, podman, or
buildah, which needs no daemon.

An image belongs to one state of what goes into it (`Image.name` ends in a hash of that) and is kept as an archive in
the cache, which containerd and docker can load. Docker and podman fetch the Dockerfile's base from its registry;
buildah takes a Debian made here of Debian's packages. `S3SINK_BASE_IMAGE` names another base for all three.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from devtools.image_builders import Builder, builder_here, reason_against, say
from devtools.processes import ServerFailedError
from sink_job.engine.cache import cache_dir

ROOT = Path(__file__).resolve().parents[1]
TARGETS = ("operator", "job")
_CONTEXT = ("Dockerfile", ".dockerignore", "pyproject.toml", "LICENSE", "container", "operator", "sink_job")
_PAUSE = 'FROM {base}\nUSER 65535:65535\nENTRYPOINT ["sleep", "infinity"]\n'


# Archives that this process may read until it ends; other checkouts remove no archive that is in use.
_in_use: list[IO[bytes]] = []


@dataclass(frozen=True)
class Image:
    """An image that is built: the name by which pods ask for it, and its archive (as `docker save` writes it)."""

    name: str
    archive: Path

    @property
    def repository(self) -> str:
        return self.name.rpartition(":")[0]

    @property
    def tag(self) -> str:
        return self.name.rpartition(":")[2]


def built(*targets: str) -> list[Image]:
    """Images of the Dockerfile's targets (`operator`, `job`) or `pause`, of the cache or built now.

    `S3SINK_IMAGES=kept` takes those of the cache as they are, of whatever code, where there are any. Raises
    `ServerFailedError` with the builder's words, or with what is missing on this machine. The archives stay until this
    process ends, whatever other checkouts build.
    """
    folder = cache_dir() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    if os.environ.get("S3SINK_IMAGES") == "kept":
        kept = [_kept(folder, target) for target in targets]
        if all(kept):
            images = [image for image in kept if image]
            for image in images:
                _use(image.archive)
            return images
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        builder = builder_here()
        with _snapshot() as context:
            return [_image(builder, target, folder, context) for target in targets]


def _kept(folder: Path, target: str) -> Image | None:
    archive = max(folder.glob(f"{target}-*.tar"), key=lambda path: path.stat().st_mtime, default=None)
    return Image(f"localhost/s3sink-{target}:{archive.stem.rpartition('-')[2]}", archive) if archive else None


def _image(builder: Builder, target: str, folder: Path, context: Path) -> Image:
    key = _key(builder, None if target == "pause" else context)
    image = Image(f"localhost/s3sink-{target}:{key}", folder / f"{target}-{key}.tar")
    if image.archive.exists():
        _use(image.archive)
        return image
    say(f"building the image {image.name} (minutes, the first time) ...")
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(dir=folder, prefix="saving-") as work:
        base = builder.base()
        if target == "pause":
            dockerfile = Path(work, "Dockerfile")
            dockerfile.write_text(_PAUSE.format(base=base or _dockerfile_base()))
            context, options = Path(work), []
        else:
            dockerfile = context / "Dockerfile"
            options = ["--target", target, *(["--build-arg", f"BASE_IMAGE={base}"] if base else [])]
        builder.build(image.name, dockerfile, context, options)
        made = Path(work, "image.tar")
        builder.save(image.name, made)
        for old in folder.glob(f"{target}-*.tar"):
            _remove_unless_used(old)
        made.rename(image.archive)
        _use(image.archive)
        try:
            builder.tidy(image.name, dockerfile, context, options)
        except ServerFailedError as error:
            say(f"what is not needed any more could not be removed from the store of layers: {error}")
    size = image.archive.stat().st_size / 1e6
    say(f"built {image.name} in {time.monotonic() - begin:.0f} s, {size:.0f} MB")
    return image


def _use(archive: Path) -> None:
    file = archive.open("rb")
    fcntl.flock(file, fcntl.LOCK_SH)
    _in_use.append(file)


def _remove_unless_used(archive: Path) -> None:
    with archive.open("rb") as file, contextlib.suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        archive.unlink()


@contextlib.contextmanager
def _snapshot() -> Iterator[Path]:
    """A copy of what the Dockerfile may copy, so that what is hashed is what is built, whoever edits meanwhile."""
    with tempfile.TemporaryDirectory(prefix="s3sink-context-") as work:
        for name in _CONTEXT:
            if (ROOT / name).is_dir():
                shutil.copytree(
                    ROOT / name, Path(work, name), ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
                )
            else:
                shutil.copy2(ROOT / name, work)
        yield Path(work)


def _key(builder: Builder, context: Path | None) -> str:
    """A hash over all that goes into an image: its base, and the files of `context`."""
    digest = hashlib.sha256(f"{type(builder).__name__} {builder.base()} {_PAUSE}".encode())
    for path in sorted(context.rglob("*")) if context else ():
        if path.is_file():
            digest.update(f"{path.relative_to(context or ROOT)} {path.stat().st_mode & 0o111}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _dockerfile_base() -> str:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith("ARG BASE_IMAGE="))


def main() -> None:
    """`python -m devtools.images [--if-possible] [operator] [job] [pause]`: builds images and prints their names and
    archives. With `--if-possible` a machine that cannot build them is no error.
    """
    targets = [word for word in sys.argv[1:] if word != "--if-possible"]
    if unknown := {*targets} - {*TARGETS, "pause"}:
        sys.exit(f"images: no target {' '.join(sorted(unknown))}: operator, job, pause")
    if "--if-possible" in sys.argv and (reason := reason_against()):
        say(f"no images are built: {reason}")
        return
    try:
        for image in built(*(targets or TARGETS)):
            print(image.name, image.archive)
    except ServerFailedError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
