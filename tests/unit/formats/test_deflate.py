"""DEFLATE: the bytes depend on the data, the level and the version of the library alone."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import zlib
from collections import Counter

import pytest

from sink_job.formats.deflate import GZIP, RAW, deflate

PROGRAM = """
import sys
from hashlib import sha256
from random import Random
from sink_job.formats.deflate import GZIP, RAW, deflate
rng = Random(1)
counts = (1, 2, 3, 4, 5, 7, 10, 20, 50, 300, 9_000)
rows = [b"".join(b'{"n":%d}\\n' % rng.randrange(999) for _ in range(count)) for count in counts]
made = [deflate(each, level, form) for each in rows for level in range(4) for form in (GZIP, RAW)]
print(sha256(b"".join(made)).hexdigest())
"""
PROCESSES = 120
"""With ISA-L's way for a single call one or two of them had other bytes."""


@pytest.mark.parametrize("level", [0, 1, 2, 3])
@pytest.mark.parametrize("data", [b"", b"a", b"abc" * 100_000], ids=["empty", "short", "long"])
def test_what_is_compressed_is_read_again(level: int, data: bytes) -> None:
    assert gzip.decompress(deflate(data, level, GZIP)) == data
    assert zlib.decompress(deflate(data, level, RAW), -15) == data


def test_a_gzip_member_has_no_time() -> None:
    assert deflate(b"abc", 2, GZIP)[4:8] == bytes(4)


def test_the_bytes_do_not_depend_on_the_process() -> None:
    """Each process has other addresses, and glibc fills memory with another byte."""
    found: Counter[bytes] = Counter()
    for number in range(PROCESSES):
        environment = {**os.environ, "MALLOC_PERTURB_": ("0", "85", "255")[number % 3], "PYTHONMALLOC": "malloc"}
        done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, check=True)
        found[done.stdout] += 1
    assert list(found.values()) == [PROCESSES]
