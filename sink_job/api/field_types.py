"""What names and small texts of a manifest may look like: each a type with its own sentence."""

from __future__ import annotations

import dataclasses
import difflib
import ipaddress
import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from sink_job.api.date_pattern import check_path_format

RESERVED: Final = "_s3sink"
"""The directory under topicsDir that holds ledgers; no topic and no path may take its place."""

_DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_DNS_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_TOPIC = r"^[a-zA-Z0-9._-]+$"
_SINK_ID = r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"
_DATA_KEY = r"^[-._a-zA-Z0-9]+$"
_BUCKET = r"^[a-z0-9][a-z0-9.-]*[a-z0-9]$"
_REGION = r"^[a-z0-9]+(-[a-z0-9]+)*$"
_LOCALE = r"^[A-Za-z]{2,3}([-_][A-Za-z]{4})?([-_]([A-Za-z]{2}|[0-9]{3}))?$"
_EXTENSION = r"^(\.[A-Za-z0-9_-]+)+$"
_PROPERTY = r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$"
_OFFSET = r"^[+-]([01][0-9]|2[0-3]):[0-5][0-9]$"
_SERVER = re.compile(r"^(\[[0-9a-fA-F:.%]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})$")


@dataclasses.dataclass(frozen=True)
class TextValidator:
    """Annotation: `check` raises ValueError with the rest of a sentence that begins with the value ("is empty").

    `schema` is what the JSON schema can say of it; the check itself is what counts.
    """

    check: Callable[[str], None]
    schema: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)

    def _checked(self, text: str) -> str:
        self.check(text)
        return text

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(schema) | dict(self.schema)


def _not_longer(text: str, most: int) -> None:
    if len(text) > most:
        raise ValueError(f"is longer than {most} characters")


def _fits(text: str, pattern: str, most: int, sentence: str) -> None:
    _not_longer(text, most)
    if not re.fullmatch(pattern, text):
        raise ValueError(sentence)


def _without_control(text: str, *, most: int) -> None:
    if not text:
        raise ValueError("is empty")
    _not_longer(text, most)
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise ValueError("has control characters")


def check_dns_label(text: str) -> None:
    """A Kubernetes name that can also be a label."""
    said = "is not a name: lower-case letters, digits and - are allowed, a letter or digit first and last"
    _fits(text, _DNS_LABEL, 63, said)


def check_object_name(text: str) -> None:
    """The name of a Kubernetes Secret."""
    said = "is not a name: lower-case letters, digits, - and . are allowed, a letter or digit first and last"
    _fits(text, _DNS_NAME, 253, said)


def check_data_key(text: str) -> None:
    """A key in a Kubernetes Secret."""
    _fits(text, _DATA_KEY, 253, "is not a key of a secret: letters, digits, - _ and . are allowed")
    if text in (".", "..") or text.startswith(".."):
        raise ValueError("is not a key of a secret: it cannot begin with ..")


def check_sink_id(text: str) -> None:
    """What names a ledger in the bucket."""
    said = "is not a sink id: letters, digits, - _ and . are allowed, a letter or digit first and last"
    _fits(text, _SINK_ID, 127, said)
    if ".." in text:
        raise ValueError("is not a sink id: it cannot hold ..")
    if text == "topics":
        raise ValueError("is taken: beside the ledgers, that directory says who owns a topic")


def check_topic(text: str) -> None:
    """Kafka's own rule for topics, and ours."""
    _fits(text, _TOPIC, 249, "is not a topic: Kafka allows letters, digits, . _ and -")
    if text in (".", ".."):
        raise ValueError("is not a topic: Kafka does not allow . and ..")
    if text == RESERVED:
        raise ValueError("cannot be copied: its directory would be the one that holds the ledgers")


def check_topics_pattern(text: str) -> None:
    """A regular expression that Java, which Kafka uses, and Python read alike, as far as this can be told."""
    _not_longer(text, 1024)
    if not text:
        raise ValueError("is empty")
    if "(?P" in text or "(?(" in text:
        raise ValueError("uses (?P or (?(, which Java's regular expressions do not have")
    try:
        re.compile(text)
    except (re.error, OverflowError) as error:
        raise ValueError(f"is not a regular expression: {error}") from None
    except RecursionError:
        raise ValueError("has too many brackets inside each other") from None


def check_group_id(text: str) -> None:
    """A consumer group."""
    _without_control(text, most=255)
    if text != text.strip():
        raise ValueError("has blanks around it")


def check_property(text: str) -> None:
    """The name of a Kafka client property."""
    _fits(text, _PROPERTY, 200, "is not the name of a property: letters, digits, - _ and single . are allowed")


def check_bootstrap_servers(text: str) -> None:
    """host:port, separated by commas."""
    _not_longer(text, 4096)
    for server in text.split(","):
        found = _SERVER.fullmatch(server.strip())
        if not found or not 0 < int(found.group(2)) < 65536:
            raise ValueError(
                "is not a list of brokers: write host:port, separated by commas, without protocol (security.protocol "
                "is one of spec.kafka.properties)"
            )


def check_extension(text: str) -> None:
    """What an object's name ends in."""
    _fits(text, _EXTENSION, 32, "is not an extension: write a dot and letters or digits, such as .bin")


def check_field_path(text: str) -> None:
    """A field of a record's value, dotted where nested."""
    _without_control(text, most=512)
    if "" in text.split("."):
        raise ValueError("has an empty segment: write field names, separated by single dots")


def check_timezone(text: str) -> None:
    """An IANA zone or ±hh:mm."""
    _not_longer(text, 64)
    if not re.fullmatch(_OFFSET, text) and text not in _zones():
        raise ValueError(f"is not a time zone: write an IANA name or ±hh:mm{_nearest_zone(text)}")


def _nearest_zone(text: str) -> str:
    by_lower = {zone.lower(): zone for zone in _zones()}
    near = difflib.get_close_matches(text.lower(), by_lower, n=1, cutoff=0.75)
    return f"; did you mean {by_lower[near[0]]}?" if near else ", such as Europe/Berlin or +02:00"


@cache
def _zones() -> frozenset[str]:
    """The zones of the tzdata package, which paths are made from: the machine may know others."""
    names = resources.files("tzdata").joinpath("zones").read_text(encoding="ascii").split()
    return frozenset(names) - {"Factory"}


def check_locale(text: str) -> None:
    """A language, with script and country if need be."""
    said = "is not a known locale: write a language such as en, or language and country such as de-CH"
    _fits(text, _LOCALE, 16, said)
    try:
        from babel.core import Locale as Known
        from babel.core import UnknownLocaleError
    except ImportError:  # the operator does without; the job, which prints names of months, looks again
        return
    try:
        Known.parse(text.replace("-", "_"))
    except (UnknownLocaleError, ValueError):
        raise ValueError(said) from None


def check_topics_dir(text: str) -> None:
    """First element(s) of every key."""
    if not text:
        return
    _without_control(text, most=512)
    elements = text.split("/")
    if "" in elements:
        raise ValueError("has an empty element: no / first, last or doubled")
    if {".", ".."} & set(elements):
        raise ValueError("has an element . or ..")
    if RESERVED in elements:
        raise ValueError(f"has the element {RESERVED}, which is kept for ledgers")


def check_delimiter(text: str) -> None:
    """What stands between the directories of a key."""
    _without_control(text, most=16)
    if "%" in text:
        raise ValueError("has a %, which is kept for characters that are escaped in keys")
    if RESERVED in text:
        raise ValueError(f"has {RESERVED}, which is kept for ledgers")


def check_file_delimiter(text: str) -> None:
    """What stands between topic, partition and offset: must not run into the numbers."""
    check_delimiter(text)
    if any(character.isdigit() for character in text):
        raise ValueError("has a digit: it could not be told from the partition and the offset")


def check_bucket(text: str) -> None:
    """S3's rule for buckets."""
    if not 3 <= len(text) <= 63:
        raise ValueError("is not a bucket: S3 allows 3 to 63 characters")
    _fits(
        text, _BUCKET, 63, "is not a bucket: S3 allows lower-case letters, digits, - and ., none of the two at an end"
    )
    if ".." in text:
        raise ValueError("is not a bucket: S3 does not allow two dots in a row")


def check_region(text: str) -> None:
    """A region of AWS, or what another store calls one."""
    _fits(text, _REGION, 64, "is not a region: write one such as eu-central-1")


def check_endpoint(text: str) -> None:
    """The URL of a store: scheme and host, nothing that carries a secret."""
    _not_longer(text, 512)
    said = "is not the URL of a store: write https://host or https://host:port"
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        raise ValueError(said) from None
    if not text.startswith(("http://", "https://")) or not url.hostname or port == 0:
        raise ValueError(said)
    if url.username is not None or url.password is not None:
        raise ValueError("carries credentials: name their secret in spec.s3.credentials")
    if url.path not in ("", "/") or url.query or url.fragment:
        raise ValueError(f"{said}, without a path: the bucket stands in spec.s3.bucket")


def is_loopback(endpoint: str) -> bool:
    """Whether the URL points to this very machine, where nobody listens in."""
    host = urlsplit(endpoint).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _schema(pattern: str, most: int, least: int = 1) -> dict[str, object]:
    return {"pattern": pattern, "minLength": least, "maxLength": most}


DnsLabel = Annotated[str, TextValidator(check_dns_label, _schema(_DNS_LABEL, 63))]
ObjectName = Annotated[str, TextValidator(check_object_name, _schema(_DNS_NAME, 253))]
DataKey = Annotated[str, TextValidator(check_data_key, _schema(_DATA_KEY, 253))]
SinkId = Annotated[str, TextValidator(check_sink_id, _schema(_SINK_ID, 127))]
TopicName = Annotated[str, TextValidator(check_topic, _schema(_TOPIC, 249))]
TopicsPattern = Annotated[str, TextValidator(check_topics_pattern, {"minLength": 1, "maxLength": 1024})]
GroupId = Annotated[str, TextValidator(check_group_id, {"minLength": 1, "maxLength": 255})]
PropertyName = Annotated[str, TextValidator(check_property, _schema(_PROPERTY, 200))]
BootstrapServers = Annotated[str, TextValidator(check_bootstrap_servers, {"minLength": 3, "maxLength": 4096})]
Extension = Annotated[str, TextValidator(check_extension, _schema(_EXTENSION, 32))]
FieldPath = Annotated[str, TextValidator(check_field_path, {"minLength": 1, "maxLength": 512})]
PathFormat = Annotated[str, TextValidator(check_path_format, {"minLength": 1, "maxLength": 512})]
Timezone = Annotated[str, TextValidator(check_timezone, {"minLength": 1, "maxLength": 64})]
Locale = Annotated[str, TextValidator(check_locale, _schema(_LOCALE, 16))]
TopicsDir = Annotated[str, TextValidator(check_topics_dir, {"maxLength": 512})]
Delimiter = Annotated[str, TextValidator(check_delimiter, {"minLength": 1, "maxLength": 16})]
FileDelimiter = Annotated[str, TextValidator(check_file_delimiter, {"minLength": 1, "maxLength": 16})]
Bucket = Annotated[str, TextValidator(check_bucket, _schema(_BUCKET, 63, 3))]
Region = Annotated[str, TextValidator(check_region, _schema(_REGION, 64))]
Endpoint = Annotated[str, TextValidator(check_endpoint, {"pattern": "^https?://", "maxLength": 512})]
