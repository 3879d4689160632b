"""A driver that runs in the background while a test observes it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sink_job.coordinator.coordinator import Coordinator


@contextmanager
def running_driver(driver: Coordinator) -> Iterator[None]:
    """Runs the driver in a thread until the end of the block."""
    thread = threading.Thread(target=driver.run)
    thread.start()
    try:
        yield
    finally:
        driver.stop()
        thread.join()
