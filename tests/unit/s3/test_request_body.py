import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.s3.checksums import crc64nvme
from sink_job.s3.request_body import ChunkedBody

CHUNK = 4 << 20


def _read_all(body: ChunkedBody) -> bytes:
    return b"".join(iter(lambda: bytes(body.read(8192)), b""))


@given(st.lists(st.binary(max_size=50), max_size=10))
def test_a_body_is_the_concatenation_of_its_buffers(buffers: list[bytes]) -> None:
    body = ChunkedBody(buffers)
    expected = b"".join(buffers)
    assert (_read_all(body), len(body), body.crc64nvme()) == (expected, len(expected), crc64nvme(expected))


def test_a_body_can_be_rewound_to_its_start() -> None:
    body = ChunkedBody([b"one ", bytearray(b"two "), memoryview(b"three")])
    assert body.read(1) == b"one "
    assert body.seek(0) == 0
    assert body.read() == b"one two three"
    assert body.tell() == len(body) == 13
    assert body.read(1) == b""


def test_a_single_buffer_is_a_body() -> None:
    assert _read_all(ChunkedBody(pa.py_buffer(b"arrow"))) == b"arrow"


def test_a_large_buffer_is_read_in_chunks() -> None:
    body = ChunkedBody(bytes(2 * CHUNK + 1))
    assert [len(body.read(8192)) for _ in range(4)] == [CHUNK, CHUNK, 1, 0]


def test_buffers_are_not_copied() -> None:
    data = bytearray(b"before")
    body = ChunkedBody([data])
    data[:] = b"after!"
    assert body.read(8192) == b"after!"


def test_an_empty_body_is_true() -> None:
    assert bool(ChunkedBody(b""))
    assert len(ChunkedBody([])) == 0


@pytest.mark.parametrize(("offset", "whence"), [(1, io.SEEK_SET), (0, io.SEEK_CUR), (-1, io.SEEK_END)])
def test_a_body_can_be_positioned_only_at_its_start_or_its_end(offset: int, whence: int) -> None:
    with pytest.raises(io.UnsupportedOperation):
        ChunkedBody(b"body").seek(offset, whence)
