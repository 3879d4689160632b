"""Log lines of the operator: readable by people and by machines, and without secrets."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from s3sink_operator.logs import JsonLines, TextLines

SECRETS = (
    'sasl.jaas.config: ScramLoginModule required username="kafka" password="hunter22";',
    "ssl.keystore.password=hunter22, retries=3",
    "GET /api failed: Authorization: Bearer hunter22.hunter22-hunter22",
    "AWS_SECRET_ACCESS_KEY=hunter22",
)


def record(message: str, error: BaseException | None = None) -> logging.LogRecord:
    trace = None if error is None else (type(error), error, error.__traceback__)
    return logging.LogRecord("s3sink_operator.reconcile", logging.WARNING, __file__, 1, "%s", (message,), trace)


@pytest.mark.parametrize("formatter", [TextLines(), JsonLines()], ids=["text", "json"])
@pytest.mark.parametrize("message", SECRETS, ids=["login", "property", "header", "environment"])
def test_a_secret_that_is_quoted_is_hidden(formatter: logging.Formatter, message: str) -> None:
    assert "hunter22" not in formatter.format(record(message))


@pytest.mark.parametrize("formatter", [TextLines(), JsonLines()], ids=["text", "json"])
@pytest.mark.parametrize("before", range(16_250, 16_384, 4))
def test_a_secret_where_a_long_message_is_cut_is_hidden(formatter: logging.Formatter, before: int) -> None:
    assert "hunter22" not in formatter.format(record("x" * before + ' password="hunter22 and more of it"'))


@pytest.mark.parametrize("formatter", [TextLines(), JsonLines()], ids=["text", "json"])
def test_a_secret_in_a_traceback_is_hidden(formatter: logging.Formatter) -> None:
    try:
        raise ValueError("password=hunter22")
    except ValueError:
        line = formatter.format(record("a look failed", sys.exc_info()[1]))
    assert "ValueError" in line
    assert "hunter22" not in line


@pytest.mark.parametrize(
    "message",
    [
        "data/flights: Secret flights-s3 is not there; spec.s3.credentials names it",
        "the API server asks for basic authentication-by-certificate",
    ],
)
def test_text_without_a_secret_is_unchanged(message: str) -> None:
    assert message in TextLines().format(record(message))


def test_a_line_of_json_has_time_level_logger_and_message() -> None:
    line = json.loads(JsonLines().format(record("said")))
    assert (line["level"], line["logger"], line["message"]) == ("WARNING", "s3sink_operator.reconcile", "said")
    assert line["time"]
