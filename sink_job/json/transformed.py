"""Values that transforms have made of values with the schema of a registry or of the manifest.

They have the form of JsonConverter's envelope, but the schema is the text of a `Schema`: it is complete, also in what
JsonConverter does not write, such as the logical types of Avro. It is in no registry: objects have it as they have the
schemas of ConnectJson.
"""

from __future__ import annotations

from typing import Final

import msgspec

from sink_job.connect.schema import Schema
from sink_job.json.connect_json import ConnectJsonConverter

_DECODER: Final[msgspec.json.Decoder[Schema | None]] = msgspec.json.Decoder(Schema | None)


class TransformedConverter(ConnectJsonConverter):
    """Converts such values."""

    _what = "the transformed value"

    def _schema(self, text: bytes) -> Schema | None:
        return _DECODER.decode(text)
