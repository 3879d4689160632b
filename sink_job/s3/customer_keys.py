"""Keys of customers (SSE-C): the parameters of each request that needs one, from files of mounted Secrets.

The store does not say which key an object has. Everything that is written has the current key, or none if a sink has
left this encryption. What exists is read with the current key. If the store rejects it, the previous ones are tried,
and at last none: it may be from before the first.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from botocore.exceptions import ClientError

from sink_job.api.errors import InvalidCredentials
from sink_job.engine.secret_files import read_key

ANOTHER_KEY: Final = (
    "if it was written with another key, name that one in spec.s3.encryption.previousKeys; AWS rejects new objects "
    "with SSE-C unless BlockedEncryptionTypes of the bucket is NONE"
)
NO_KEY: Final = (
    "S3 answers so if spec.s3.region is not the region of the bucket, or if the object was written with a key of a "
    "customer (SSE-C): then spec.s3.encryption needs the type Customer and this key, in customerKey or previousKeys"
)
_BYTES: Final = 32
_STARTS: Final = frozenset({"PutObject", "CreateMultipartUpload"})
"""Operations that choose the key of an object."""
_REJECTED: Final = (400, 403)
"""HTTP status for another key. The answer to a HEAD has no code."""


class CustomerKeys:
    """The keys of a client: the current one (None: nothing is written with a key), then the previous ones.

    Raises InvalidCredentials for a file that does not contain a key.
    """

    def __init__(self, files: tuple[Path | None, ...]) -> None:
        found = tuple({} if file is None else _parameters(_read(file)) for file in files)
        self._parameters: tuple[Mapping[str, str], ...] = found if {} in found else (*found, {})

    def of(self, operation: str) -> tuple[Mapping[str, str], ...]:
        """The parameters of the attempts of a request, in their order. `operation`: S3's name."""
        return self._parameters[:1] if operation in _STARTS else self._parameters


def is_other_key(error: ClientError) -> bool:
    """Whether an answer can mean that the object has another key."""
    return error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") in _REJECTED


def customer_key_id(files: tuple[Path | None, ...]) -> str | None:
    """What distinguishes the current key from others, without revealing it; None without one. Raises
    InvalidCredentials."""
    current = files[0] if files else None
    return None if current is None else hashlib.sha256(b"s3sink " + _read(current)).hexdigest()[:16]


def _read(file: Path) -> bytes:
    text = read_key(file, "customer key")
    try:
        key = base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        key = b""
    if len(key) != _BYTES:
        raise InvalidCredentials(
            f"customer key: {file} is not the base64 of {_BYTES} bytes: create one with openssl rand -base64 {_BYTES}, "
            "and put it into the Secret of spec.s3.encryption.customerKey or previousKeys"
        )
    return key


def _parameters(key: bytes) -> dict[str, str]:
    return {
        "SSECustomerAlgorithm": "AES256",
        "SSECustomerKey": base64.b64encode(key).decode(),
        "SSECustomerKeyMD5": base64.b64encode(hashlib.md5(key, usedforsecurity=False).digest()).decode(),
    }
