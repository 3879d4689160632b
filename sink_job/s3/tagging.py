"""Tags of objects with their offsets: put when an object is visible, and before the ledger acknowledges it (P5).

They are not set when an upload starts, because the last offset is not known then. S3 replaces all tags of an object, so
those of `spec.s3.tags` are put again with them. A driver that is killed before the acknowledgement leaves an object
without them; the next one puts them. They depend on the object alone, so it does not matter how often they are put.
"""

from __future__ import annotations

import logging
from typing import Final
from urllib.parse import parse_qsl

from sink_job.api.errors import AccessDenied, SinkError
from sink_job.s3.errors import NotFound
from sink_job.s3.transport import Transport

_PERMISSION: Final = "spec.s3.offsetTags needs s3:PutObjectTagging"
_log = logging.getLogger(__name__)


class TaggingCalls:
    """The requests about tags with offsets."""

    _transport: Transport
    _has_warned = False

    def tag_offsets(self, key: str, first: int, last: int, count: int) -> None:
        """Puts the tags of an object with the offsets `first` to `last` (inclusive) and `count` records, if the
        settings have offsetTags.

        An object that was moved away is no error. Other errors are logged with `onTagError: Ignore`. With `Fail`:
        raises ConfigurationError and TransientError.
        """
        settings = self._transport.settings
        if not settings.offset_tags:
            return
        try:
            self.put_offset_tags(key, first, last, count)
        except NotFound:
            _log.info("%s/%s was moved away before it has got its tags", settings.url, key)
        except SinkError as error:
            if not settings.ignores_tag_errors:
                raise
            level = logging.DEBUG if self._has_warned else logging.WARNING
            self._has_warned = True
            _log.log(level, "an object has no tags with its offsets (onTagError: Ignore; logged once): %s", error)

    def put_offset_tags(self, key: str, first: int, last: int, count: int) -> None:
        """Puts the tags of an object, whatever the settings are. Raises NotFound, ConfigurationError and
        TransientError."""
        tags = self._tags_of_settings() | offset_tags(first, last, count)
        tag_set = {"TagSet": [{"Key": name, "Value": value} for name, value in tags.items()]}
        try:
            self._transport.call("put_object_tagging", key=key, Tagging=tag_set)
        except AccessDenied as error:
            raise AccessDenied(f"{error}; {_PERMISSION}") from None

    def has_offset_tags(self, key: str, first: int, last: int, count: int) -> bool:
        """Whether an object has the tags of the settings and these, and no others. Raises NotFound, and AccessDenied
        without s3:GetObjectTagging."""
        answer = self._transport.call("get_object_tagging", key=key)
        found = {tag["Key"]: tag["Value"] for tag in answer["TagSet"]}
        return found == self._tags_of_settings() | offset_tags(first, last, count)

    def _tags_of_settings(self) -> dict[str, str]:
        return dict(parse_qsl(dict(self._transport.settings.attributes).get("Tagging", ""), keep_blank_values=True))


def offset_tags(first: int, last: int, count: int) -> dict[str, str]:
    """The tags of an object. `first`, `last`: its offsets, inclusive; `count`: its records."""
    return {"startOffset": str(first), "endOffset": str(last), "recordCount": str(count)}
