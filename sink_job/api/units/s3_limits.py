"""Limits of Amazon S3 that the spec, the operator and the rotation share."""

from typing import Final

MAX_PARTS: Final = 10_000
"""Maximum number of parts of a multipart upload."""
