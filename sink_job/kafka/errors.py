"""What the JVM's Kafka client throws, as errors of the domain: the one place that knows its exceptions by name."""

from __future__ import annotations

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
    "KafkaException",  # what a client's constructor wraps around a wrong property
    "PatternSyntaxException",
    "SecurityDisabledException",
    "UnsupportedVersionException",
}
_KNOWN = _TLS | _AUTHENTICATION | _GROUP_IN_USE | _MISSING | _TRANSIENT | _MISCONFIGURED
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
    """The chain of exceptions as AdminBridge.java writes it, outermost first."""
    chain = []
    for line in text.splitlines():
        name, _, message = line.partition(" ")
        chain.append(JavaThrowable.of(name, message))
    return chain


def is_known(thrown: JavaThrowable) -> bool:
    """Whether `domain_error` has a class for it that says more than SinkError."""
    return thrown.name.endswith("AuthorizationException") or thrown.name in _KNOWN


def domain_error(chain: list[JavaThrowable], *, doing: str, servers: str) -> SinkError:
    """The error for `chain`, thrown while `doing` (what was asked, in words) at the brokers `servers`."""
    names = {thrown.name for thrown in chain}
    said = _messages(chain)
    asked = f"Kafka at {servers}, asked to {doing}"
    if names & _TLS:
        return InvalidCredentials(f"{asked}: the TLS handshake failed: {said}")
    if names & _AUTHENTICATION:
        return InvalidCredentials(f"{asked}: authentication failed: {said}")
    if any(name.endswith("AuthorizationException") for name in names):
        return AccessDenied(f"Kafka at {servers} does not allow us to {doing}: {said}")
    if any(phrase in thrown.message for thrown in chain for phrase in _UNRESOLVED):
        return TransientError(f"spec.kafka.bootstrapServers: no name in {servers} can be resolved")
    if names & _GROUP_IN_USE:
        return ConfigurationError(f"{asked}: the group has members: somebody else consumes with it")
    if names & _MISSING:
        return TopicNotFound(f"{asked}: {said}")
    if names & _TRANSIENT:
        return TransientError(f"Kafka at {servers} did not {doing} in time: {said}{_hint(said)}")
    if names & _MISCONFIGURED:
        return ConfigurationError(f"{asked}: {said}")
    return SinkError(f"{asked}: {chain[-1].name if chain else 'no reason given'}: {said}")


def _messages(chain: list[JavaThrowable]) -> str:
    """The innermost message: the outer ones wrap it, or repeat it with its class name in front."""
    messages = [thrown.message for thrown in chain if thrown.message]
    return messages[-1].rstrip(". ") if messages else (chain[-1].name if chain else "no reason given")


def _hint(said: str) -> str:
    unreachable = "node assignment" in said or "bootstrap" in said.lower()
    return " (are the brokers up, and is security.protocol what they speak?)" if unreachable else ""
