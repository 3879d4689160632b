"""The errors of kubectl, with the action to take."""

from __future__ import annotations

import pytest

from s3sink_operator.kubectl.client import parse_error


@pytest.mark.parametrize(
    ("said", "passes"),
    [
        ("Unable to connect to the server: EOF", True),
        ("Error from server (TooManyRequests): wait", True),
        ('Error from server (NotFound): s3sinks.s3sink.io "flights" not found', False),
        ("Error from server (Forbidden): no", False),
    ],
)
def test_transient_errors_are_distinguished_from_permanent_ones(said: str, passes: bool) -> None:
    assert parse_error(said).is_transient is passes


def test_a_verb_that_is_missing_is_named() -> None:
    said = (
        'Error from server (Forbidden): s3sinks.s3sink.io "flights" is forbidden: User "eve" cannot patch resource '
        '"s3sinks" in API group "s3sink.io" in the namespace "data"'
    )
    error = parse_error(said)
    assert error.reason == "Forbidden"
    assert 'you need the verb "patch" on s3sinks.s3sink.io' in str(error)


def test_the_error_without_the_crd_says_what_to_install() -> None:
    assert "install the chart" in str(parse_error('error: the server doesn\'t have a resource type "s3sinks"\n'))


def test_only_the_error_of_the_last_attempt_is_shown() -> None:
    said = 'E1121 17:38:33.521988   10129 memcache.go:265] "Unhandled Error"\nThe connection to the server was refused'
    assert str(parse_error(said)) == "The connection to the server was refused"
