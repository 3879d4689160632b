"""A driver that works in the background while a test watches what it does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sink_job.coordinator.coordinator import Coordinator


@contextmanager
def running(driver: Coordinator) -> Iterator[None]:
    """The driver in a thread of its own, until the block ends."""
    thread = threading.Thread(target=driver.run)
    thread.start()
    try:
        yield
    finally:
        driver.stop()
        thread.join()
