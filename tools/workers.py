"""Prints the number of pytest workers of `make test` on this machine: two for each CPU, as far as the memory allows.

Half of the time of the tests with servers is spent waiting for a JVM, a timeout or a store, so two workers keep one CPU
busy. A worker with a broker, its S3 server, its Spark and one `s3sink` process needs up to 5 GiB.
"""

from __future__ import annotations

import os

MEMORY_OF_A_WORKER = 5 << 30
"""In bytes."""
MIN_WORKERS = 2


def workers(cpus: int, memory: int) -> int:
    """The number of workers for `cpus` CPUs and `memory` bytes."""
    return max(MIN_WORKERS, min(2 * cpus, memory // MEMORY_OF_A_WORKER))


def main() -> None:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    print(workers(len(os.sched_getaffinity(0)), memory))


if __name__ == "__main__":
    main()
