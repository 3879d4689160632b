"""A failed request to a schema registry, and the reaction to it. No client library is imported here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from sink_job.api.errors import ConfigurationError

SUBJECT_NOT_FOUND: Final = 40401
VERSION_NOT_FOUND: Final = 40402
SCHEMA_NOT_FOUND: Final = 40403
"""Error codes of Confluent's REST API. Clients of other registries use the last one for an id that does not exist."""


RETRIED_STATUS: Final = frozenset((408, 425, 429))
"""Codes of HTTP below 500 after which a request is sent again."""


class Reaction(Enum):
    """The reaction to a failure."""

    ABSENT = "handled by the caller"
    TRANSIENT = "retry"
    SUSPECT = "retry a few times, then user action required"
    CONFIGURATION = "user action required"


@dataclass(frozen=True, slots=True)
class RegistryFailure:
    """One failed request. `code` is the registry's error code, 0 if unknown. `raises`: the error class if user action
    is required."""

    reaction: Reaction
    text: str
    code: int = 0
    raises: type[ConfigurationError] = ConfigurationError
