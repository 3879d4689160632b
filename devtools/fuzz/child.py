"""The process that runs the batches of a converter:
`python -m devtools.fuzz.child CONVERTER SEED FIRST SECONDS BATCHES BYTES`.

Prints one JSON object per line: a `Progress` before each batch and at the end, and a `Broken` for a batch after which
the process continues.
"""

from __future__ import annotations

import faulthandler
import gc
import resource
import sys
import time
import traceback

import msgspec

from devtools.fuzz.checks import check
from devtools.fuzz.targets import case_of


class Progress(msgspec.Struct, tag=True):
    """The number of the next batch, and so far: the CPU time in seconds since the start, the numbers of texts and of
    rejections."""

    batch: int
    cpu_s: float
    texts: int
    rejected: int


class Broken(msgspec.Struct, tag=True):
    """A batch for which a property does not hold. `place` is that of the exception, for the grouping of findings."""

    batch: int
    place: str
    text: str


def main(converter: str, seed: int, first: int, seconds: float, min_batches: int, max_bytes: int) -> None:
    """Runs the batches from `first` on for `seconds` of CPU time, and at least `min_batches` of them."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (max_bytes, max_bytes))
    batch, texts, rejected, started = first, 0, 0, time.process_time()
    while True:
        cpu_s = time.process_time() - started
        _print(Progress(batch, cpu_s, texts, rejected))
        if batch >= first + min_batches and cpu_s >= seconds:
            break
        try:
            found = check(case_of(converter, seed, batch))
            texts, rejected = texts + found[0], rejected + found[1]
        except BaseException as error:  # a panic in Rust is no Exception
            if isinstance(error, (SystemExit, KeyboardInterrupt)):
                raise
            _print(Broken(batch, _place(error), "".join(traceback.format_exception(error, limit=-8))))
        batch += 1
        if batch % 100 == 0:
            gc.collect()


def _place(error: BaseException) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {frame.filename.rpartition('/')[2]}:{frame.lineno}"


def _print(message: Progress | Broken) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6]))
