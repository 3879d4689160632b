"""What frames cost between two processes: over a Unix socket, and in shared memory (memfd).

`python -m bench.frame_transfer [--gigabytes 4] [--frame-mib 2] [--repeat 5]`: a sender fills a frame, as the reader in
the JVM does. A receiver gets it as a buffer of its own, as a Python worker does (`socket`), or as a view of a slot of
shared memory that is filled in place (`memfd`, with slots for three parts of 25 MiB). Both sides are Python processes.
The result is CPU-seconds of both per GB; `fill` is the sender's work alone, which both ways have.
"""

from __future__ import annotations

import argparse
import mmap
import os
import socket
import statistics
import struct
from collections.abc import Callable

import numpy as np
import pyarrow as pa

HEAD = struct.Struct("=q")
SLOT_BYTES = 75 << 20
"""What a task keeps of its frames until their parts are acknowledged: three parts in flight."""


def cpu_of_pair(sender: Callable[[socket.socket], None], receiver: Callable[[socket.socket], None]) -> float:
    """Runs both in processes of their own; returns the CPU-seconds of both."""
    before = os.times()
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    ends[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    children = [_fork(work, own, other) for work, own, other in ((sender, *ends), (receiver, *ends[::-1]))]
    for end in ends:
        end.close()
    for child in children:
        _, status = os.waitpid(child, 0)
        assert status == 0, "a side has failed"
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def _fork(work: Callable[[socket.socket], None], own: socket.socket, other: socket.socket) -> int:
    child = os.fork()
    if child:
        return child
    other.close()
    try:
        work(own)
        os._exit(0)
    except BaseException:
        os._exit(1)


def source(size: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 255, size, np.uint8)


def over_socket(frames: int, size: int) -> float:
    content = source(size)

    def send(own: socket.socket) -> None:
        buffer = np.empty(size, np.uint8)
        for _ in range(frames):
            np.copyto(buffer, content)
            own.sendall(HEAD.pack(size))
            own.sendall(buffer.data)

    def receive(own: socket.socket) -> None:
        kept: list[pa.Buffer] = []
        for _ in range(frames):
            _read(own, memoryview(bytearray(HEAD.size)))
            buffer = pa.allocate_buffer(size)
            _read(own, memoryview(buffer))
            kept = [*kept[-(SLOT_BYTES // size) :], buffer]

    return cpu_of_pair(send, receive)


def over_memfd(frames: int, size: int) -> float:
    content, slots = source(size), max(1, SLOT_BYTES // size)
    file = os.memfd_create("frames")
    os.ftruncate(file, slots * size)

    def send(own: socket.socket) -> None:
        shared = np.frombuffer(mmap.mmap(file, slots * size), np.uint8)
        for number in range(frames):
            at = number % slots * size
            np.copyto(shared[at : at + size], content)
            own.sendall(HEAD.pack(at))
            if number >= slots - 1:
                _read(own, memoryview(bytearray(1)))  # the oldest slot is free again

    def receive(own: socket.socket) -> None:
        shared = pa.py_buffer(mmap.mmap(file, slots * size))
        head = bytearray(HEAD.size)
        for _ in range(frames):
            _read(own, memoryview(head))
            frame = shared.slice(HEAD.unpack(head)[0], size)
            assert frame.size == size
            own.sendall(b"1")

    found = cpu_of_pair(send, receive)
    os.close(file)
    return found


def fill_alone(frames: int, size: int) -> float:
    content = source(size)

    def send(own: socket.socket) -> None:
        buffer = np.empty(size, np.uint8)
        for _ in range(frames):
            np.copyto(buffer, content)

    return cpu_of_pair(send, lambda own: None)


def _read(own: socket.socket, into: memoryview) -> None:
    while into:
        received = own.recv_into(into, len(into), socket.MSG_WAITALL)
        assert received, "the other side has ended"
        into = into[received:]


WAYS = {"fill": fill_alone, "socket": over_socket, "memfd": over_memfd}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=4)
    parser.add_argument("--frame-mib", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    size = options.frame_mib << 20
    frames = int(options.gigabytes * 1e9 / size)
    found: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(options.repeat):
        for name, way in WAYS.items():
            found[name].append(way(frames, size) / (frames * size / 1e9))
    print("| way | CPU-s/GB | least | most |\n|---|---|---|---|")
    for name, each in found.items():
        print(f"| {name} | {statistics.median(each):.3f} | {min(each):.3f} | {max(each):.3f} |")


if __name__ == "__main__":
    main()
