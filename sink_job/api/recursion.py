"""A higher limit of recursion of the process, within a block."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_lock: Final = threading.Lock()
_limits: Final[list[int]] = []
"""The limits of the blocks that are active in any thread."""
_usual: Final[list[int]] = []
"""The limit outside of all blocks, while one is active."""


@contextmanager
def recursion_limit(limit: int) -> Iterator[None]:
    """Sets Python's recursion limit to at least `limit` frames inside the block, for all threads of the process. Blocks
    of several threads may overlap: the last one that ends restores the limit."""
    with _lock:
        if not _limits:
            _usual[:] = [sys.getrecursionlimit()]
        _limits.append(limit)
        sys.setrecursionlimit(max(*_usual, *_limits))
    try:
        yield
    finally:
        with _lock:
            _limits.remove(limit)
            sys.setrecursionlimit(max(*_usual, *_limits, 0))
