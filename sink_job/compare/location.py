"""Where the other writer has written."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_URL: Final = re.compile(r"s3a?://([^/]+)(?:/(.*))?", re.DOTALL)
_LOGIN: Final = re.compile(r"[^/]*//[^/]*@")


class Location(NamedTuple):
    """The directory of the other writer: its `topics.dir`, empty for the whole bucket."""

    bucket: str
    directory: str

    @classmethod
    def parse(cls, url: str) -> Location:
        """Raises ValueError for a text of another form than `s3://bucket/directory`."""
        if _LOGIN.match(url):
            raise ValueError("has a login: use s3://BUCKET/DIRECTORY; credentials are those of the sink")
        match = _URL.fullmatch(url)
        if match is None:
            raise ValueError(f"{url!r} is not s3://BUCKET/DIRECTORY")
        return cls(match[1], (match[2] or "").strip("/"))

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.directory}"
