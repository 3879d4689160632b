"""Maps the exceptions of the JVM's Kafka client to the errors of this project."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sink_job.api.errors import (
    AccessDenied,
    ConfigurationError,
    InvalidCredentials,
    SinkError,
    TopicNotFound,
    TransientError,
)

_TLS = {"SslAuthenticationException", "SSLHandshakeException"}
_AUTHENTICATION = {
    "AuthenticationException",
    "IllegalSaslStateException",
    "LoginException",
    "SaslAuthenticationException",
    "UnsupportedSaslMechanismException",
}
_GROUP_IN_USE = {"GroupNotEmptyException", "RebalanceInProgressException", "UnknownMemberIdException"}
_MISSING = {"InvalidTopicException", "UnknownTopicIdException", "UnknownTopicOrPartitionException"}
_TRANSIENT = {
    "BrokerNotAvailableException",
    "CoordinatorLoadInProgressException",
    "CoordinatorNotAvailableException",
    "DisconnectException",
    "InterruptException",
    "InterruptedException",
    "LeaderNotAvailableException",
    "NetworkException",
    "NotCoordinatorException",
    "NotLeaderOrFollowerException",
    "RetriableException",
    "TimeoutException",
}
_MISCONFIGURED = {
    "ConfigException",
    "InvalidConfigurationException",
    "InvalidGroupIdException",
    "KafkaException",  # the constructor of a client wraps the error of an invalid property in it
    "PatternSyntaxException",
    "SecurityDisabledException",
    "UnsupportedVersionException",
}
_KNOWN = _TLS | _AUTHENTICATION | _GROUP_IN_USE | _MISSING | _TRANSIENT | _MISCONFIGURED
_NO_TOKEN = "An internal error occurred while retrieving token from callback handler"
"""The only message of Kafka's client for a token endpoint that it cannot reach, or that fails again and again."""
_TRACE = re.compile(r"\s+at [\w.$/<>]+\([^)]*\).*", re.DOTALL)
_CLASSES = re.compile(r"([\w.$]+(Exception|Error): )+")
_UNRESOLVED = ("No resolvable bootstrap urls", "Couldn't resolve server", "DNS resolution failed")


@dataclass(frozen=True)
class JavaThrowable:
    """One exception of a chain: the simple name of its class, and its message."""

    name: str
    message: str

    @classmethod
    def of(cls, class_name: str, message: str) -> JavaThrowable:
        """From the full name of a Java class."""
        return cls(class_name.rpartition(".")[2].rpartition("$")[2], message)


def parse_chain(text: str) -> list[JavaThrowable]:
    """The chain of exceptions in the format of AdminBridge.java, outermost first."""
    chain = []
    for line in text.splitlines():
        name, _, message = line.partition(" ")
        chain.append(JavaThrowable.of(name, message))
    return chain


def is_known(thrown: JavaThrowable) -> bool:
    """Whether `domain_error` maps it to a more specific class than SinkError."""
    return thrown.name.endswith("AuthorizationException") or thrown.name in _KNOWN


def domain_error(chain: list[JavaThrowable], *, doing: str, servers: str) -> SinkError:
    """The error for the exceptions of a request. `doing`: the request, as a verb phrase. `servers`: the brokers."""
    names = {thrown.name for thrown in chain}
    message = _messages(chain)
    request = f"Kafka at {servers}: cannot {doing}"
    if names & _TLS:
        return InvalidCredentials(f"{request}: the TLS handshake failed: {message}")
    if names & _AUTHENTICATION:
        if message == _NO_TOKEN:
            return TransientError(
                f"{request}: the token endpoint does not answer, or its certificate is not trusted: check "
                "spec.kafka.login.tokenUrl and tokenCaSecret; the log of the JVM has the reason"
            )
        return InvalidCredentials(f"{request}: authentication failed: {_without_trace(message)}")
    if any(name.endswith("AuthorizationException") for name in names):
        return AccessDenied(f"{request}: access denied: {message}")
    if any(phrase in thrown.message for thrown in chain for phrase in _UNRESOLVED):
        return TransientError(f"spec.kafka.bootstrapServers: no name in {servers} can be resolved")
    if names & _GROUP_IN_USE:
        return ConfigurationError(
            f"{request}: the group has members: stop the other consumers of the group, or use another kafka.groupId"
        )
    if names & _MISSING:
        return TopicNotFound(f"{request}: {message}")
    if names & _TRANSIENT:
        return TransientError(f"Kafka at {servers} did not {doing} in time: {message}{_hint(message)}")
    if names & _MISCONFIGURED:
        return ConfigurationError(f"{request}: {message}")
    return SinkError(f"{request}: {chain[-1].name if chain else 'no reason given'}: {message}")


def _messages(chain: list[JavaThrowable]) -> str:
    """The innermost message. The outer messages only wrap or repeat it."""
    messages = [thrown.message for thrown in chain if thrown.message]
    return messages[-1].rstrip(". ") if messages else (chain[-1].name if chain else "no reason given")


def _without_trace(message: str) -> str:
    """`message` without the stack trace and the names of classes that the callback handler of a login adds."""
    return _CLASSES.sub("", _TRACE.sub("", message), count=1)


def _hint(message: str) -> str:
    unreachable = "node assignment" in message or "bootstrap" in message.lower()
    return " (check that the brokers are running, and that security.protocol matches theirs)" if unreachable else ""
