import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.s3.checksums import b64, combine, combine_all, crc64nvme, from_b64

checksums = st.integers(min_value=0, max_value=2**64 - 1)


def _by_the_polynomial(data: bytes) -> int:
    """CRC-64/NVME bit by bit, as in catalogues of CRCs (reflected 0xAD93D23594C93659, all ones in and out)."""
    crc = 2**64 - 1
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x9A6C9329AC4BC9B5 if crc & 1 else 0)
    return crc ^ (2**64 - 1)


def test_the_checksum_equals_the_check_value_of_crc_catalogues() -> None:
    assert crc64nvme(b"123456789") == 0xAE8B14860A799888


@given(st.binary(max_size=200))
def test_the_checksum_is_the_crc_of_the_nvme_polynomial(data: bytes) -> None:
    assert crc64nvme(data) == _by_the_polynomial(data)


@given(st.binary(max_size=5000), st.binary(max_size=5000))
def test_two_combined_checksums_are_the_checksum_of_the_concatenation(a: bytes, b: bytes) -> None:
    assert combine(crc64nvme(a), crc64nvme(b), len(b)) == crc64nvme(a + b)


@given(st.binary(max_size=5000), st.binary(max_size=5000))
def test_a_continued_checksum_is_the_checksum_of_the_concatenation(a: bytes, b: bytes) -> None:
    assert crc64nvme(b, crc64nvme(a)) == crc64nvme(a + b)


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_the_checksum_of_an_object_is_combined_from_those_of_its_parts(parts: list[bytes]) -> None:
    assert combine_all((crc64nvme(part), len(part)) for part in parts) == crc64nvme(b"".join(parts))


@given(checksums, checksums, checksums, *[st.integers(min_value=1, max_value=2**40)] * 2)
def test_the_combination_of_checksums_is_associative_also_for_terabytes(
    a: int, b: int, c: int, len_b: int, len_c: int
) -> None:
    assert combine(combine(a, b, len_b), c, len_c) == combine(a, combine(b, c, len_c), len_b + len_c)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_has_a_checksum(kind: type) -> None:
    assert crc64nvme(kind(b"123456789")) == 0xAE8B14860A799888


@given(checksums)
def test_a_checksum_in_base64_decodes_to_the_same_checksum(crc: int) -> None:
    assert from_b64(b64(crc)) == crc


def test_a_checksum_in_base64_has_the_form_of_s3s_headers() -> None:
    assert b64(0xAE8B14860A799888) == "rosUhgp5mIg="


@pytest.mark.parametrize("text", ["", "AAAA", "not base64!", "rosUhgp5mIg=-3"])
def test_a_text_that_is_not_a_checksum_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"base64|CRC64NVME"):
        from_b64(text)
