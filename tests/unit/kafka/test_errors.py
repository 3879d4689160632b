"""The mapping of the Kafka client's exceptions to errors."""

from __future__ import annotations

import pytest

from sink_job.api.errors import (
    AccessDenied,
    ConfigurationError,
    InvalidCredentials,
    SinkError,
    TopicNotFound,
    TransientError,
)
from sink_job.kafka.errors import domain_error, parse_chain

COMMON = "org.apache.kafka.common.errors."
WRAPPED = "java.util.concurrent.ExecutionException outer\n"


def error_of(text: str) -> SinkError:
    return domain_error(parse_chain(text), doing="read the end offsets", servers="kafka:9092")


@pytest.mark.parametrize(
    ("thrown", "kind"),
    [
        (COMMON + "TimeoutException Timed out waiting for a node assignment.", TransientError),
        (COMMON + "CoordinatorNotAvailableException x", TransientError),
        (COMMON + "SaslAuthenticationException Authentication failed", InvalidCredentials),
        (COMMON + "SslAuthenticationException SSL handshake failed", InvalidCredentials),
        (COMMON + "TopicAuthorizationException Not authorized to access topics: [t]", AccessDenied),
        (COMMON + "ClusterAuthorizationException Cluster authorization failed.", AccessDenied),
        (COMMON + "UnknownTopicOrPartitionException This server does not host it.", TopicNotFound),
        (COMMON + "UnknownMemberIdException x", ConfigurationError),
        ("org.apache.kafka.common.config.ConfigException Invalid value X", ConfigurationError),
        ("org.apache.kafka.common.config.ConfigException No resolvable bootstrap urls given", TransientError),
        ("java.lang.IllegalStateException whatever", SinkError),
    ],
)
def test_an_exception_is_mapped_to_its_error(thrown: str, kind: type[SinkError]) -> None:
    assert type(error_of(WRAPPED + thrown)) is kind


def test_the_message_of_a_timeout_names_the_brokers_and_the_request() -> None:
    message = str(error_of(WRAPPED + COMMON + "TimeoutException Timed out waiting for a node assignment."))
    assert message.startswith("Kafka at kafka:9092 did not read the end offsets in time: Timed out")
    assert "security.protocol" in message


def test_the_message_of_a_missing_permission_names_the_request() -> None:
    message = str(error_of(COMMON + "GroupAuthorizationException Not authorized to access group: g"))
    assert message == (
        "Kafka at kafka:9092: cannot read the end offsets: access denied: Not authorized to access group: g"
    )


def test_an_authentication_failure_inside_a_timeout_is_an_authentication_failure() -> None:
    text = COMMON + "TimeoutException outer\n" + COMMON + "SaslAuthenticationException bad password"
    assert isinstance(error_of(text), InvalidCredentials)


def test_the_message_of_an_exception_without_a_message_is_its_name() -> None:
    assert "InterruptedException" in str(error_of("java.lang.InterruptedException "))


def test_an_unknown_exception_keeps_its_name_and_message() -> None:
    assert "IllegalStateException: odd" in str(error_of("java.lang.IllegalStateException odd"))


LOGIN = "javax.security.auth.login.LoginException "
TRACE = (
    " at org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler.handle"
    "(OAuthBearerLoginCallbackHandler.java:189) at java.base/java.lang.Thread.run(Unknown Source)"
)


def test_a_rejected_client_of_a_token_endpoint_is_named_without_the_trace() -> None:
    error = error_of(
        f"{LOGIN}org.apache.kafka.common.KafkaException: x.UnretryableException: java.io.IOException: The response "
        f"code 401 and error response {{invalid_client}} was encountered{TRACE}"
    )
    assert type(error) is InvalidCredentials
    assert str(error) == (
        "Kafka at kafka:9092: cannot read the end offsets: authentication failed: The response code 401 and error "
        "response {invalid_client} was encountered"
    )


def test_a_token_endpoint_that_does_not_answer_may_answer_later() -> None:
    error = error_of(f"{LOGIN}An internal error occurred while retrieving token from callback handler")
    assert type(error) is TransientError
    assert "the token endpoint does not answer" in str(error)
