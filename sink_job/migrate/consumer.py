"""The source of a connector: its topics, its consumer group, and the properties of its Kafka client."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from sink_job.api.field_errors import in_a_line
from sink_job.api.field_types import (
    check_bootstrap_servers,
    check_group_id,
    check_property,
    check_topic,
)
from sink_job.api.rules.reserved_properties import (
    KAFKA_OWNED,
    LOGIN,
    SECRET_NAMES,
    is_secret,
    kafka_property_error,
    looks_secret,
)
from sink_job.migrate.draft import BY_HAND, Draft
from sink_job.migrate.java.patterns import check_java_pattern
from sink_job.migrate.manifest import Item
from sink_job.migrate.secret_plan import SecretPlan
from sink_job.migrate.values import PLACEHOLDER, parse_choice, parse_list

OVERRIDE: Final = "consumer.override."
WORKER: Final = "consumer."
_MAX_TOPICS: Final = 1000
_MAX_PROPERTIES: Final = 200
_MAX_SECRETS: Final = 50
_OFFSETS: Final = {"earliest": "Earliest", "latest": "Latest"}
_ISOLATION: Final = {"read_committed": "ReadCommitted", "read_uncommitted": "ReadUncommitted"}
_OF_THE_SINK: Final = ("auto.offset.reset", "isolation.level", "group.id", "bootstrap.servers")
_LEFT_OUT: Final = re.compile(r"metric\.reporters|confluent\.monitoring\..*|client\.(id|rack)")
_TRUST: Final = re.compile(r"ssl\.truststore\.(location|password|type)")
_KEY_STORE: Final = re.compile(r"ssl\.(keystore\.(location|password|type)|key\.password)")
_RE2_LACKS: Final = re.compile(r"\(\?<?[=!]|\(\?>|\\[1-9]|[*+?}]\+")


def convert_topics(draft: Draft) -> None:
    """Sets `kafka.topics` or `kafka.topicsPattern`."""
    names = parse_list(draft.text("topics") or "")
    pattern = draft.text("topics.regex")
    if names:
        _topics(draft, names)
        if pattern:
            draft.different("topics.regex", "topics is set, too: the connector rejects both; it is left out")
    elif pattern:
        _pattern(draft, pattern)
    else:
        draft.missing("topics", "the connector needs topics or topics.regex", "write kafka.topics")
        draft.put("kafka.topics", [BY_HAND], "topics: write the right ones")


def _topics(draft: Draft, names: list[str]) -> None:
    found = []
    for name in dict.fromkeys(names):
        try:
            check_topic(name)
        except ValueError as error:
            why = "is a value of a configuration provider" if PLACEHOLDER.search(name) else str(error)
            draft.different("topics", f"the topic {in_a_line(name)} {why}; it is left out", "correct kafka.topics")
        else:
            found.append(name)
    if len(found) > _MAX_TOPICS:
        action = "use topics.regex, or several connectors of the same group"
        draft.impossible("topics", f"has {len(found):,} topics; an S3Sink lists at most {_MAX_TOPICS:,}", action)
    draft.put("kafka.topics", found or [BY_HAND], "topics")


def _pattern(draft: Draft, pattern: str) -> None:
    key = "topics.regex"
    try:
        check_java_pattern(pattern)
    except ValueError as error:
        draft.impossible(key, str(error), "use topics, or another expression")
        return
    if _RE2_LACKS.search(pattern):
        what = (
            "The operator compares patterns of several sinks with RE2, which does not have this one (ConflictUnknown)"
        )
        draft.to_do(what, "check that no other S3Sink writes the same topics to the same place")
    draft.put("kafka.topicsPattern", pattern, key)


def convert_group(draft: Draft, connector: str, group: str | None, managed: str | None) -> None:
    """Sets `kafka.groupId`: the position of the connector."""
    own = draft.text(f"{OVERRIDE}group.id")
    of_worker = draft.worker.get(f"{WORKER}group.id", "").strip()
    value, comment = group or own or of_worker or f"connect-{connector}", "continues where the connector ended"
    comment = "--group" if group else f"{OVERRIDE}group.id" if own else comment
    try:
        check_group_id(value)
    except ValueError as error:
        key = f"{OVERRIDE}group.id" if own and not group else "--group" if group else f"{WORKER}group.id"
        if not (group or own or of_worker):
            key, error = "name", ValueError(f"the consumer group of this name {error}")
        draft.different(key, str(error), "correct kafka.groupId")
        value = f"connect-{BY_HAND}"
    if PLACEHOLDER.search(value):
        draft.different(f"{OVERRIDE}group.id", "a configuration provider has the value", "write kafka.groupId")
    draft.put("kafka.groupId", value, comment)
    if managed and not group:
        effect = f"{managed} names consumer groups itself; {value} is a guess"
        action = "find the group with `kafka-consumer-groups.sh --list` or in its console, and give it with --group"
        draft.missing("group.id", effect, action)


def convert_client(draft: Draft, plan: SecretPlan) -> None:
    """Sets the properties of the Kafka client."""
    _bootstrap(draft)
    settings = _consumer_settings(draft)
    _choice(draft, settings, "auto.offset.reset", "kafka.startingOffsets", _OFFSETS, "Earliest")
    _isolation(draft, settings)
    ClientProperties(draft, plan, settings).convert()


def _bootstrap(draft: Draft) -> None:
    key = "bootstrap.servers"
    override, of_consumer = draft.text(f"{OVERRIDE}{key}"), draft.worker.get(f"{WORKER}{key}", "").strip()
    of_worker = override or of_consumer or draft.worker.get(key, "").strip()
    value = of_worker or (draft.text(key) or "")
    brokers = ",".join(each.strip().rpartition("://")[2] for each in value.split(","))
    try:
        if not value:
            raise ValueError
        check_bootstrap_servers(brokers)
    except ValueError:
        draft.put("kafka.bootstrapServers", f"{BY_HAND}:9092", f"the worker's {key}: write the brokers")
        draft.to_do(
            "The brokers are not in the configuration of a connector", "write kafka.bootstrapServers, or use --worker"
        )
    else:
        draft.put("kafka.bootstrapServers", brokers, f"{key} of the worker" if of_worker and not override else key)


def _consumer_settings(draft: Draft) -> dict[str, tuple[str, str]]:
    """Each property of the consumer: its key and its value. Those of the connector precede those of the worker."""
    found = {
        key.removeprefix(WORKER): (key, value.strip())
        for key, value in draft.worker.items()
        if key.startswith(WORKER) and not key.startswith(OVERRIDE)
    }
    for key in draft.settings:
        if key.startswith(OVERRIDE):
            found[key.removeprefix(OVERRIDE)] = (key, draft.text(key) or "")
    return found


def _choice(
    draft: Draft,
    settings: Mapping[str, tuple[str, str]],
    name: str,
    path: str,
    choices: Mapping[str, str],
    default: str,
) -> None:
    key, value = settings.get(name, ("", ""))
    if not value:
        draft.put(path, default, "for partitions of which the group has no offset")
        return
    try:
        draft.put(path, parse_choice(value, choices), key)
    except ValueError as error:
        draft.different(key, f"{error}; {default} is written", f"check {path}")
        draft.put(path, default, key)


def _isolation(draft: Draft, settings: Mapping[str, tuple[str, str]]) -> None:
    key, value = settings.get("isolation.level", ("", ""))
    advice = "remove the line to leave out aborted transactions"
    try:
        level = parse_choice(value or "read_uncommitted", _ISOLATION)
    except ValueError as error:
        draft.different(key, f"{error}; ReadUncommitted is written", "check kafka.isolationLevel")
        level = "ReadUncommitted"
    comment = key or "isolation.level: the connector's default"
    draft.put("kafka.isolationLevel", level, f"{comment}; {advice}" if level == "ReadUncommitted" else comment)


_OF_IAM: Final = ("sasl.jaas.config", "sasl.mechanism", "security.protocol", "sasl.client.callback.handler.class")
_CLASSES_OF_IAM: Final = "software.amazon.msk.auth.iam."
_IAM: Final = re.compile(r"software\.amazon\.msk\.auth\.iam\.IAMLoginModule\s+required\s*;")
_LOGIN: Final = re.compile(r"\$\{login:([\w.]+)\}")


def _content(key: str, value: str) -> str:
    """What belongs into a key of a Secret."""
    login = _LOGIN.fullmatch(value)
    if login is None:
        return f"the value of {key}"
    options = "" if "iam" in login[1] else ' username="USER" password="PASSWORD"'
    return f"{login[1]} required{options};"


class ClientProperties:
    """Divides the properties of the consumer into those of the manifest and those of Secrets."""

    def __init__(self, draft: Draft, plan: SecretPlan, settings: Mapping[str, tuple[str, str]]) -> None:
        self._draft, self._plan, self._settings = draft, plan, settings
        self._properties: dict[str, Any] = {}
        self._secrets: list[Item] = []

    def convert(self) -> None:
        """Sets `kafka.login`, `kafka.properties` and `kafka.propertySecrets`."""
        self._login()
        for name, (key, value) in self._settings.items():
            if name not in _OF_THE_SINK and not self._is_left_out(name, key) and not self._is_store(name):
                self._property(name, key, value)
        self._stores()
        for found, most in ((self._properties, _MAX_PROPERTIES), (self._secrets, _MAX_SECRETS)):
            if len(found) > most:
                self._draft.impossible(OVERRIDE + "*", f"there are {len(found)} properties; a manifest has {most}")
        if self._properties:
            self._draft.put("kafka.properties", self._properties, "")
        if self._secrets:
            self._draft.put("kafka.propertySecrets", self._secrets, "")

    def _login(self) -> None:
        """IAM of MSK has a login without a Secret. Those with options of its own stay properties: the job has their
        classes, too."""
        found = {name: self._settings.get(name, ("", ""))[1] for name in _OF_IAM}
        module = _LOGIN.sub(r"\1 required;", found["sasl.jaas.config"])
        if (found["sasl.mechanism"], found["security.protocol"]) == ("AWS_MSK_IAM", "SASL_SSL") and _IAM.fullmatch(
            module
        ):
            key = self._settings["sasl.mechanism"][0]
            self._draft.put("kafka.login", {"type": "MskIam"}, f"{key} and others")
            self._settings = {name: value for name, value in self._settings.items() if name not in _OF_IAM}

    def _is_left_out(self, name: str, key: str) -> bool:
        if name == "interceptor.classes":
            self._draft.different(key, KAFKA_OWNED[name])
        elif (why := kafka_property_error(name)) is not None:
            self._draft.left_out(key, why.removeprefix("cannot be set here: "))
        elif _LEFT_OUT.fullmatch(name):
            self._draft.left_out(key, "has no effect on objects")
        else:
            return False
        return True

    def _is_store(self, name: str) -> bool:
        has_key_store = "ssl.keystore.location" in self._settings
        if _TRUST.fullmatch(name):
            return "ssl.truststore.location" in self._settings
        return has_key_store and _KEY_STORE.fullmatch(name) is not None

    def _property(self, name: str, key: str, value: str) -> None:
        try:
            check_property(name)
        except ValueError as error:
            self._draft.different(key, str(error), "correct it")
            return
        is_login = re.search(SECRET_NAMES, name) or name == LOGIN or is_secret(name) or looks_secret(value)
        if (existing := self._plan.existing(value)) is not None:
            self._secret(name, key, existing.secret, existing.key)
        elif is_login or PLACEHOLDER.search(value):
            self._secret(name, key, self._plan.create("kafka", {name: _content(key, value)}), name)
        else:
            self._properties[name] = Item(value, key)
            is_class = name.endswith(("callback.handler.class", "engine.factory.class"))
            if (is_class and not value.startswith(_CLASSES_OF_IAM)) or "truststore.location" in name:
                effect = "its class or file has to be in the image of the job"
                self._draft.different(key, effect, "use another login, or an image of your own with it")

    def _secret(self, name: str, key: str, secret: str, in_secret: str) -> None:
        if all(each.value["name"] != name for each in self._secrets):
            self._secrets.append(Item({"name": name, "secret": secret, "key": in_secret}, key))

    def _stores(self) -> None:
        """Java key stores become PEM from a Secret, which needs no file in the pods."""
        if "ssl.truststore.location" in self._settings:
            key = self._settings["ssl.truststore.location"][0]
            self._properties["ssl.truststore.type"] = Item("PEM", key)
            content = f"the certificates of {key}, as PEM (keytool -exportcert -rfc)"
            self._secret("ssl.truststore.certificates", key, self._plan.create("kafka", {"ca.crt": content}), "ca.crt")
        if "ssl.keystore.location" in self._settings:
            key = self._settings["ssl.keystore.location"][0]
            self._properties["ssl.keystore.type"] = Item("PEM", key)
            contents = {"tls.crt": f"the certificate chain of {key}, as PEM", "tls.key": "its key, as PEM (PKCS 8)"}
            secret = self._plan.create("kafka", contents)
            self._secret("ssl.keystore.certificate.chain", key, secret, "tls.crt")
            self._secret("ssl.keystore.key", key, secret, "tls.key")
