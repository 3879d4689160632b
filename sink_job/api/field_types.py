"""Validated text types of a manifest: names, patterns, time zones, delimiters, URLs. Each has its own messages."""

from __future__ import annotations

import dataclasses
import difflib
import ipaddress
import re
import unicodedata
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit

from sink_job.api.units.date_pattern import check_path_format
from sink_job.api.units.java_dates import DatePattern

if TYPE_CHECKING:  # the command `convert` uses the checks without pydantic
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

RESERVED: Final = "_s3sink"
"""The directory of the ledgers under topicsDir. No topic and no path element may have this name."""
OF_NO_TOPIC: Final = "[^A-Za-z0-9._-]"
"""A character that no topic has."""

_DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_DNS_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_TOPIC = r"^[a-zA-Z0-9._-]+$"
_SINK_ID = r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"
_DATA_KEY = r"^[-._a-zA-Z0-9]+$"
_BUCKET = r"^[a-z0-9][a-z0-9.-]*[a-z0-9]$"
_HOST = r"(?:(?!-)[a-z0-9-]{1,63}(?<!-)\.)*(?!-)[a-z0-9-]{1,63}(?<!-)\.?"
_REGION = r"^[a-z0-9]+(-[a-z0-9]+)*$"
_LOCALE = r"^[A-Za-z]{2,3}([-_][A-Za-z]{4})?([-_]([A-Za-z]{2}|[0-9]{3}))?$"
_EXTENSION = r"^(\.[A-Za-z0-9_-]+)+$"
_PROPERTY = r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$"
_OFFSET = r"^[+-]([01][0-9]|2[0-3]):[0-5][0-9]$"
_SERVER = re.compile(r"^(\[[0-9a-fA-F:.%]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})$")


@dataclasses.dataclass(frozen=True)
class TextValidator:
    """Annotation of a text field. `check` raises ValueError with a message that follows the value ("is empty").

    `schema` is added to the JSON schema. It may be less strict than `check`, which decides.
    """

    check: Callable[[str], None]
    schema: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)

    def _checked(self, text: str) -> str:
        self.check(text)
        return text

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(schema) | dict(self.schema)


def _check_length(text: str, max_length: int) -> None:
    if len(text) > max_length:
        raise ValueError(f"is longer than {max_length} characters")


def _check_pattern(text: str, pattern: str, max_length: int, message: str) -> None:
    _check_length(text, max_length)
    if not re.fullmatch(pattern, text):
        raise ValueError(message)


def _check_printable(text: str, *, max_length: int) -> None:
    if not text:
        raise ValueError("is empty")
    _check_length(text, max_length)
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise ValueError("contains control characters")


def check_dns_label(text: str) -> None:
    """Checks a Kubernetes name of the form of a DNS label (RFC 1123)."""
    message = (
        "is not a valid name: use lower-case letters, digits and -; the first and last character must be a letter or "
        "a digit"
    )
    _check_pattern(text, _DNS_LABEL, 63, message)


def check_object_name(text: str) -> None:
    """Checks the name of a Kubernetes Secret (a DNS subdomain)."""
    message = (
        "is not a valid name: use lower-case letters, digits, - and .; the first and last character must be a letter "
        "or a digit"
    )
    _check_pattern(text, _DNS_NAME, 253, message)


def check_data_key(text: str) -> None:
    """Checks a key of a Kubernetes Secret."""
    _check_pattern(text, _DATA_KEY, 253, "is not a valid key of a Secret: use letters, digits, - _ and .")
    if text in (".", "..") or text.startswith(".."):
        raise ValueError("is not a valid key of a Secret: it must not start with ..")


def check_sink_id(text: str) -> None:
    """Checks a sink id, which names a ledger in the bucket."""
    message = (
        "is not a valid sink id: use letters, digits, - _ and .; the first and last character must be a letter or a "
        "digit"
    )
    _check_pattern(text, _SINK_ID, 127, message)
    if ".." in text:
        raise ValueError("is not a valid sink id: it must not contain ..")
    if text == "topics":
        raise ValueError("is reserved: this directory holds the owners of topics; use another sink id")


def check_topic(text: str) -> None:
    """Checks a topic name: Kafka's rule, and the name reserved for ledgers."""
    _check_pattern(text, _TOPIC, 249, "is not a valid topic name: Kafka allows letters, digits, . _ and -")
    if text in (".", ".."):
        raise ValueError("is not a valid topic name: Kafka does not allow . and ..")
    if text == RESERVED:
        raise ValueError("cannot be copied: a directory of this name holds the ledgers")


def check_topics_pattern(text: str) -> None:
    """Checks a regular expression, and that it has no construct known to differ between Java (Kafka) and Python."""
    _check_length(text, 1024)
    if not text:
        raise ValueError("is empty")
    if "(?P" in text or "(?(" in text:
        raise ValueError("uses (?P or (?(, which regular expressions of Java do not support")
    try:
        with warnings.catch_warnings():  # [[ and && are two characters here, and may be more in another Python
            warnings.simplefilter("ignore", FutureWarning)
            re.compile(text)
    except (re.error, OverflowError) as error:
        raise ValueError(f"is not a valid regular expression: {error}") from None
    except RecursionError:
        raise ValueError("has too many nested brackets") from None


def check_group_id(text: str) -> None:
    """Checks the id of a consumer group."""
    _check_printable(text, max_length=255)
    if text != text.strip():
        raise ValueError("starts or ends with a blank")


def check_property(text: str) -> None:
    """Checks the name of a Kafka client property."""
    _check_pattern(text, _PROPERTY, 200, "is not a valid property name: use letters, digits, - _ and single .")


def check_bootstrap_servers(text: str) -> None:
    """Checks a list of host:port, separated by commas."""
    _check_length(text, 4096)
    for server in text.split(","):
        found = _SERVER.fullmatch(server.strip())
        if not found or not 0 < int(found.group(2)) < 65536:
            raise ValueError(
                "is not a list of brokers: use host:port, separated by commas, without a protocol (set "
                "security.protocol in spec.kafka.properties)"
            )


def check_extension(text: str) -> None:
    """Checks a file extension of objects."""
    _check_pattern(text, _EXTENSION, 32, "is not a valid extension: use a dot and letters or digits, such as .bin")


def check_field_path(text: str) -> None:
    """Checks a field of a record's value; dots separate nested fields."""
    _check_printable(text, max_length=512)
    if "" in text.split("."):
        raise ValueError("has an empty segment: use field names, separated by single dots")


def check_timezone(text: str) -> None:
    """Checks an IANA time zone or an offset ±hh:mm."""
    _check_length(text, 64)
    if not re.fullmatch(_OFFSET, text) and text not in _zones():
        raise ValueError(f"is not a known time zone: use an IANA name or ±hh:mm{_nearest_zone(text)}")


def _nearest_zone(text: str) -> str:
    by_lower = {zone.lower(): zone for zone in _zones()}
    near = difflib.get_close_matches(text.lower(), by_lower, n=1, cutoff=0.75)
    return f"; did you mean {by_lower[near[0]]}?" if near else ", such as Europe/Berlin or +02:00"


@cache
def _zones() -> frozenset[str]:
    """The time zones of the tzdata package. Paths use this package too, not the zones of the machine."""
    names = resources.files("tzdata").joinpath("zones").read_text(encoding="ascii").split()
    return frozenset(names) - {"Factory"}


def check_locale(text: str) -> None:
    """Checks a language, with optional script and country."""
    message = "is not a known locale: use a language such as en, or language and country such as de-CH"
    _check_pattern(text, _LOCALE, 16, message)
    if text == "en":  # the default: no import
        return
    try:
        from babel.core import Locale as Known
        from babel.core import UnknownLocaleError
    except ImportError:  # the operator has no babel; the job, which formats names of months, checks again
        return
    try:
        Known.parse(text.replace("-", "_"))
    except (UnknownLocaleError, ValueError):
        raise ValueError(message) from None


def check_topics_dir(text: str) -> None:
    """Checks the first elements of every key."""
    if not text:
        return
    _check_printable(text, max_length=512)
    elements = text.split("/")
    if "" in elements:
        raise ValueError("has an empty element: remove / at the start, / at the end and //")
    if {".", ".."} & set(elements):
        raise ValueError("has an element . or ..")
    if RESERVED in elements:
        raise ValueError(f"contains the directory {RESERVED}, which is reserved for ledgers")


def check_dead_letter_prefix(text: str) -> None:
    """Checks the first elements of the keys of dead-letter objects."""
    if not text:
        raise ValueError("is empty: use a directory of its own such as rejected")
    check_topics_dir(text)


def check_tombstone_path(text: str) -> None:
    """Checks the path of records without a value."""
    if not text:
        raise ValueError("is empty: use a directory of its own such as tombstone")
    check_topics_dir(text)


def check_key_prefix(text: str) -> None:
    """Checks the directories of a topic's objects below topicsDir."""
    _check_length(text, 256)
    if not text:
        raise ValueError("is empty: use a directory, or remove the entry")
    check_topics_dir(text)


def check_field_name(text: str) -> None:
    """Checks the name of a field at the top of a value, or of a header."""
    _check_printable(text, max_length=256)


def check_timestamp_format(text: str) -> None:
    """Checks a pattern of SimpleDateFormat."""
    _check_printable(text, max_length=128)
    DatePattern(text)


def check_delimiter(text: str) -> None:
    """Checks the delimiter between the directories of a key."""
    _check_printable(text, max_length=16)
    if "%" in text:
        raise ValueError("contains %, which is reserved for escaped characters in keys")
    if RESERVED in text:
        raise ValueError(f"contains {RESERVED}, which is reserved for ledgers")


def check_file_delimiter(text: str) -> None:
    """Checks the delimiter between topic, partition and offset. It must not contain a digit."""
    check_delimiter(text)
    if any(character.isdigit() for character in text):
        raise ValueError("contains a digit: it must differ from the digits of partition and offset")


def check_bucket(text: str) -> None:
    """Checks a bucket name by the rules of S3."""
    if not 3 <= len(text) <= 63:
        raise ValueError("is not a valid bucket name: S3 allows 3 to 63 characters")
    message = (
        "is not a valid bucket name: S3 allows lower-case letters, digits, - and .; the first and last character must "
        "be a letter or a digit"
    )
    _check_pattern(text, _BUCKET, 63, message)
    if ".." in text:
        raise ValueError("is not a valid bucket name: S3 does not allow two dots in a row")


def check_region(text: str) -> None:
    """Checks the name of a region, of AWS or of another store."""
    _check_pattern(text, _REGION, 64, "is not a valid region: use a name such as eu-central-1")


def check_endpoint(text: str) -> None:
    """Checks the URL of a store: scheme and host, without path and credentials."""
    _check_length(text, 512)
    message = "is not the URL of a store: use https://host or https://host:port"
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        raise ValueError(message) from None
    if not text.startswith(("http://", "https://")) or not url.hostname or port == 0:
        raise ValueError(message)
    if url.username is not None or url.password is not None:
        raise ValueError("contains credentials: put them into a secret and reference it in spec.s3.credentials")
    if url.path not in ("", "/") or url.query or url.fragment:
        raise ValueError(f"{message}, without a path: set the bucket in spec.s3.bucket")
    if not _is_host(url.hostname) or any(each.isspace() for each in text):  # urlsplit removes the end of a line
        raise ValueError("has no valid host: use letters, digits, - and ., or an IP address")


def _is_host(name: str) -> bool:
    """Whether boto3 accepts the name of a host in a URL (botocore.utils.is_valid_endpoint_url)."""
    try:
        ipaddress.ip_address(name)
        return True
    except ValueError:
        return len(name) <= 255 and re.fullmatch(_HOST, name) is not None


def is_loopback(endpoint: str) -> bool:
    """True if the URL points to this machine, so that requests do not leave it."""
    host = urlsplit(endpoint).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _schema(pattern: str, max_length: int, min_length: int = 1) -> dict[str, object]:
    return {"pattern": pattern, "minLength": min_length, "maxLength": max_length}


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
FieldName = Annotated[str, TextValidator(check_field_name, {"minLength": 1, "maxLength": 256})]
PathFormat = Annotated[str, TextValidator(check_path_format, {"minLength": 1, "maxLength": 512})]
TimestampFormatText = Annotated[str, TextValidator(check_timestamp_format, {"minLength": 1, "maxLength": 128})]
Timezone = Annotated[str, TextValidator(check_timezone, {"minLength": 1, "maxLength": 64})]
Locale = Annotated[str, TextValidator(check_locale, _schema(_LOCALE, 16))]
TopicsDir = Annotated[str, TextValidator(check_topics_dir, {"maxLength": 512})]
DeadLetterPrefix = Annotated[str, TextValidator(check_dead_letter_prefix, {"minLength": 1, "maxLength": 512})]
KeyPrefix = Annotated[str, TextValidator(check_key_prefix, {"minLength": 1, "maxLength": 256})]
TombstonePath = Annotated[str, TextValidator(check_tombstone_path, {"minLength": 1, "maxLength": 512})]
Delimiter = Annotated[str, TextValidator(check_delimiter, {"minLength": 1, "maxLength": 16})]
FileDelimiter = Annotated[str, TextValidator(check_file_delimiter, {"minLength": 1, "maxLength": 16})]
Bucket = Annotated[str, TextValidator(check_bucket, _schema(_BUCKET, 63, 3))]
Region = Annotated[str, TextValidator(check_region, _schema(_REGION, 64))]
Endpoint = Annotated[str, TextValidator(check_endpoint, {"pattern": "^https?://", "maxLength": 512})]
