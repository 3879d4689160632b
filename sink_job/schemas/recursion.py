"""A higher recursion limit, for values that were accepted under the usual one."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

LIMIT: Final = 20_000
"""A value that is read within Python's usual limit of 1,000 frames has fewer than 1,000 levels. Its projection takes at
most ten frames a level, of which few need stack in C."""

_lock: Final = threading.Lock()
_before: Final[list[int]] = []


@contextmanager
def deeper() -> Iterator[None]:
    """Sets Python's recursion limit to `LIMIT` inside the block, for all threads of the process."""
    with _lock:
        _before.append(sys.getrecursionlimit())
        sys.setrecursionlimit(max(LIMIT, _before[0]))
    try:
        yield
    finally:
        with _lock:
            limit = _before.pop()
            if not _before:
                sys.setrecursionlimit(limit)
