"""Requests to a REST catalog, without PyIceberg."""

from __future__ import annotations

import json
from urllib.request import urlopen

_TIMEOUT_S = 30


def metadata_location(catalog: str, namespace: str, table: str) -> str:
    """The location of the present metadata file of a table. Raises OSError."""
    with urlopen(f"{catalog}/v1/namespaces/{namespace}/tables/{table}", timeout=_TIMEOUT_S) as answer:
        return str(json.load(answer)["metadata-location"])
