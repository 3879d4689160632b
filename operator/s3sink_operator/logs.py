"""The log of the operator on standard error: text or JSON, with secrets redacted.

The operator reads no Secrets. Messages of the API server and of pods may contain secrets.
"""

from __future__ import annotations

import json
import logging

from sink_job.api.redaction import redacted

_WARNINGS_ONLY = ("kopf", "aiohttp.access")
_MAX_MESSAGE = 16_384
"""Maximum characters of a message: the API server quotes what it rejects, of any length. A message is cut after the
redaction, which does not recognize a truncated secret."""


class OperatorTextFormatter(logging.Formatter):
    """Time, level, logger and message, followed by the traceback."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))[:_MAX_MESSAGE]


class OperatorJsonFormatter(logging.Formatter):
    """One JSON object in each line: time, level, logger, message, and the traceback as `trace`."""

    def format(self, record: logging.LogRecord) -> str:
        line = {"time": self.formatTime(record), "level": record.levelname, "logger": record.name}
        line["message"] = redacted(record.getMessage())[:_MAX_MESSAGE]
        if record.exc_info:
            line["trace"] = redacted(self.formatException(record.exc_info))
        return json.dumps(line)


def configure_logging(*, as_json: bool) -> None:
    """Logs to standard error; verbose libraries only with warnings."""
    handler = logging.StreamHandler()
    handler.setFormatter(OperatorJsonFormatter() if as_json else OperatorTextFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for noisy in _WARNINGS_ONLY:
        logging.getLogger(noisy).setLevel(logging.WARNING)
