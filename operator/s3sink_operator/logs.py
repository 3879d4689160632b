"""The operator's log lines, on standard error: text for people, JSON for machines, without secrets.

The operator reads no Secret. What it quotes, of the API server and of pods, may hold one all the same.
"""

from __future__ import annotations

import json
import logging

from sink_job.api.redaction import redacted

_WARNINGS_ONLY = ("kopf", "aiohttp.access")
_MAX_MESSAGE = 16_384
"""Characters of a message: the API server quotes what it refuses, however long that is. Cut after secrets are hidden:
of one that is cut in two, nothing would say what it is."""


class TextFormatter(logging.Formatter):
    """Time, level, logger and message, with the traceback below."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))[:_MAX_MESSAGE]


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and the traceback as `trace` if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line = {"time": self.formatTime(record), "level": record.levelname, "logger": record.name}
        line["message"] = redacted(record.getMessage())[:_MAX_MESSAGE]
        if record.exc_info:
            line["trace"] = redacted(self.formatException(record.exc_info))
        return json.dumps(line)


def configure_logging(*, as_json: bool) -> None:
    """Sends all logging to standard error; of libraries that talk a lot only warnings."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if as_json else TextFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for noisy in _WARNINGS_ONLY:
        logging.getLogger(noisy).setLevel(logging.WARNING)
