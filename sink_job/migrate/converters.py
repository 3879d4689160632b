"""The value converter of a connector: its class, and the schema registry of its settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from sink_job.api.enums import ConverterType
from sink_job.api.field_types import check_region, is_loopback
from sink_job.migrate.draft import BY_HAND, Draft
from sink_job.migrate.secret_plan import SecretPlan
from sink_job.migrate.table import KeyOwner, Treatment, key_table
from sink_job.migrate.values import PLACEHOLDER, parse_boolean, parse_choice, parse_list, simple_name

PREFIX: Final = "value.converter."
_REGISTRY: Final = "format.registry"


@dataclass(frozen=True, slots=True)
class ConverterClass:
    """What a class of a converter becomes. `registry`: the type of its registry."""

    type: ConverterType
    owner: KeyOwner
    registry: str | None = None


_GLUE = "com.amazonaws.services.schemaregistry.kafkaconnect"
_CLASSES: Final[Mapping[str, ConverterClass]] = {
    "org.apache.kafka.connect.json.JsonConverter": ConverterClass(ConverterType.CONNECT_JSON, KeyOwner.JSON_CONVERTER),
    "org.apache.kafka.connect.storage.StringConverter": ConverterClass(ConverterType.TEXT, KeyOwner.STRING_CONVERTER),
    "org.apache.kafka.connect.converters.ByteArrayConverter": ConverterClass(
        ConverterType.BYTES, KeyOwner.STRING_CONVERTER
    ),
    "io.confluent.connect.replicator.util.ByteArrayConverter": ConverterClass(
        ConverterType.BYTES, KeyOwner.STRING_CONVERTER
    ),
    "io.confluent.connect.avro.AvroConverter": ConverterClass(ConverterType.AVRO, KeyOwner.CONFLUENT, "Confluent"),
    "io.confluent.connect.protobuf.ProtobufConverter": ConverterClass(
        ConverterType.PROTOBUF, KeyOwner.CONFLUENT, "Confluent"
    ),
    "io.confluent.connect.json.JsonSchemaConverter": ConverterClass(
        ConverterType.JSON_SCHEMA, KeyOwner.CONFLUENT, "Confluent"
    ),
    f"{_GLUE}.AWSKafkaAvroConverter": ConverterClass(ConverterType.AVRO, KeyOwner.GLUE, "Glue"),
    f"{_GLUE}.jsonschema.JsonSchemaConverter": ConverterClass(ConverterType.JSON_SCHEMA, KeyOwner.GLUE, "Glue"),
    f"{_GLUE}.protobuf.ProtobufSchemaConverter": ConverterClass(ConverterType.PROTOBUF, KeyOwner.GLUE, "Glue"),
    "io.apicurio.registry.utils.converter.AvroConverter": ConverterClass(
        ConverterType.AVRO, KeyOwner.APICURIO, "Apicurio"
    ),
    "io.apicurio.registry.utils.converter.ExtJsonConverter": ConverterClass(
        ConverterType.JSON_SCHEMA, KeyOwner.APICURIO, "Apicurio"
    ),
    "io.apicurio.registry.utils.converter.ProtobufConverter": ConverterClass(
        ConverterType.PROTOBUF, KeyOwner.APICURIO, "Apicurio"
    ),
}
_SHORT: Final = ("JsonConverter", "StringConverter", "ByteArrayConverter", "AvroConverter", "ProtobufConverter")
"""Classes that Kafka Connect finds by their simple name, with and without `Converter`."""


def converter_class(name: str) -> ConverterClass | None:
    """The converter of a class; None for another class."""
    found = _CLASSES.get(name)
    if found is None and "." not in name:
        full_name = name if name.endswith("Converter") else f"{name}Converter"
        found = next(
            (each for full, each in _CLASSES.items() if full_name in _SHORT and simple_name(full) == full_name), None
        )
    return found


def convert_converter(draft: Draft, plan: SecretPlan, output: str) -> ConverterType:
    """Sets `format.converter` and `format.registry`. Without a converter the one that fits the output is assumed."""
    settings, origin = _settings(draft)
    name = settings.pop("", "")
    if not name:
        return _assumed(draft, output)
    found = converter_class(name)
    if found is None:
        _reject(draft, name)
        return ConverterType.JSON
    converter, comment = found.type, f"value.converter{origin}"
    if found.owner is KeyOwner.JSON_CONVERTER:
        schemas = _boolean(draft, settings, "schemas.enable", default=True)
        converter = ConverterType.CONNECT_JSON if schemas else ConverterType.JSON
        with_schemas = "true" if schemas else "false"
        comment += f", with schemas.enable={with_schemas}" + ("" if "schemas.enable" in settings else ", its default")
    draft.put("format.converter", str(converter), comment)
    if found.registry is not None:
        RegistryDraft(draft, plan, settings, found, origin).convert()
    _other_settings(draft, settings, found.owner)
    return converter


def _settings(draft: Draft) -> tuple[dict[str, str], str]:
    """The class (under the empty key) and the settings of the converter, and a remark on their origin. As in Kafka
    Connect, a connector without a converter has that of the worker with all of its settings."""
    own, origin = draft.text("value.converter"), ""
    source: Mapping[str, str] = draft.settings
    if not own:
        source, own, origin = draft.worker, draft.worker.get("value.converter", "").strip(), " of the worker"
    found = {key.removeprefix(PREFIX): value.strip() for key, value in source.items() if key.startswith(PREFIX)}
    if source is draft.worker:
        unused = [key for key in draft.settings if key.startswith(PREFIX)]
        for key in unused if own else ():
            draft.left_out(key, "has no effect without value.converter in the same configuration")
    return {"": own, **found}, origin


def _assumed(draft: Draft, output: str) -> ConverterType:
    """The converter for a configuration that leaves it to an unknown worker."""
    owned = {key.removeprefix(PREFIX) for key in draft.settings if key.startswith(PREFIX)}
    assumed = ConverterType.BYTES if output == "Bytes" else ConverterType.JSON
    if output in ("Avro", "Parquet") or "schema.registry.url" in owned:
        assumed = ConverterType.AVRO
    for key in [key for key in draft.settings if key.startswith(PREFIX)]:
        draft.left_out(key, "has no effect without value.converter in the same configuration")
    draft.put("format.converter", str(assumed), "value.converter is the worker's: check it")
    if assumed is ConverterType.AVRO:
        draft.put(f"{_REGISTRY}.url", [f"https://{BY_HAND}:8081"], "the worker's: write it here")
    action = "give the worker's properties with --worker, or correct format.converter"
    draft.missing("value.converter", f"the worker has it; {assumed} is assumed", action)
    return assumed


def _reject(draft: Draft, name: str) -> None:
    known = "Json, String, ByteArray, and those of Confluent, AWS Glue and Apicurio for Avro, Protobuf and JSON Schema"
    if "value.converter" in draft.settings:
        draft.impossible("value.converter", f"this converter is not supported; supported are {known}")
    else:
        draft.impossible("value.converter", f"the worker's {simple_name(name)} is not supported; supported are {known}")


def _boolean(draft: Draft, settings: Mapping[str, str], name: str, *, default: bool) -> bool:
    value = settings.get(name)
    draft.text(PREFIX + name)
    if value is None:
        return default
    try:
        return parse_boolean(value)
    except ValueError as error:
        draft.different(PREFIX + name, f"{error}; {str(default).lower()} is assumed", "correct it")
        return default


def _other_settings(draft: Draft, settings: Mapping[str, str], owner: KeyOwner) -> None:
    """Reports the settings of the converter without a field. Those of the worker count as the connector's own."""
    for name, value in settings.items():
        key = PREFIX + name
        if draft.is_handled(key):
            continue
        row = key_table().row(name, owner)
        if row is None and any(key_table().row(name, other) for other in KeyOwner if other is not KeyOwner.CONNECTOR):
            draft.left_out(key, "this converter does not use it")
        elif row is None:
            near = key_table().nearest(name, owner)
            hint = f"did you mean {PREFIX}{near}?" if near else "check what the converter does with it"
            draft.different(key, "this setting of the converter is not known", hint)
        elif row.treatment is Treatment.DIFFERENT and value.strip().lower() not in ("", row.default.lower()):
            draft.different(key, row.sentence)
        elif row.treatment is not Treatment.FIELD:
            draft.left_out(key, row.sentence)


class RegistryDraft:
    """Makes `format.registry` of the settings of a converter."""

    def __init__(
        self, draft: Draft, plan: SecretPlan, settings: Mapping[str, str], converter: ConverterClass, origin: str
    ) -> None:
        self._draft, self._plan, self._settings = draft, plan, settings
        self._converter, self._origin = converter, origin

    def convert(self) -> None:
        """Sets the fields of the registry."""
        if self._converter.registry != "Confluent":
            self._put("type", self._converter.registry, "value.converter")
        if self._converter.owner is KeyOwner.GLUE:
            self._glue()
            return
        self._urls("schema.registry.url" if self._converter.owner is KeyOwner.CONFLUENT else "apicurio.registry.url")
        if self._converter.owner is KeyOwner.CONFLUENT:
            self._confluent()
        else:
            self._apicurio()

    def _value(self, name: str) -> str:
        self._draft.text(PREFIX + name)
        return self._settings.get(name, "").strip()

    def _put(self, path: str, value: Any, name: str) -> None:
        key = name if name.startswith("value.converter") else PREFIX + name
        self._draft.put(f"{_REGISTRY}.{path}", value, key + self._origin)

    def _urls(self, name: str) -> None:
        urls, login = [], False
        for url in parse_list(self._value(name)):
            plain, has_login = without_login(url)
            login = login or has_login
            if PLACEHOLDER.search(plain) or not is_url(plain):
                self._draft.different(PREFIX + name, "is not a URL", "write it into format.registry.url")
                plain = f"https://{BY_HAND}:8081"
            if plain not in urls:
                urls.append(plain)
        if not urls:
            self._draft.missing(PREFIX + name, "the converter needs it", "write it into format.registry.url")
            urls = [f"https://{BY_HAND}:8081"]
        self._put("url", urls[:10], name)
        if any(url.startswith("http://") and not is_loopback(url) for url in urls):
            self._put("insecure", True, f"{name} is not encrypted; prefer https://")
        if login:
            self._credentials({"username": "the user of the URL of the registry", "password": "its password"}, name)

    def _credentials(self, contents: Mapping[str, str], name: str) -> None:
        if f"{_REGISTRY}.credentials" not in self._draft.fields:
            self._put("credentials", {"secret": self._plan.create("registry", contents)}, name)

    def _confluent(self) -> None:
        source = self._value("basic.auth.credentials.source").upper()
        if self._value("basic.auth.user.info") or source in ("USER_INFO", "SASL_INHERIT"):
            of = "sasl.jaas.config" if source == "SASL_INHERIT" else "basic.auth.user.info"
            contents = {"username": f"the user of {of}", "password": f"the password of {of}"}
            self._credentials(contents, "basic.auth.user.info")
        self._bearer()
        self._tls("schema.registry.ssl.truststore.", "schema.registry.ssl.keystore.")
        self._class("value.subject.name.strategy", "subjects", _SUBJECTS)
        self._class("value.schema.id.deserializer", "idIn", _ID_DESERIALIZERS)

    def _bearer(self) -> None:
        names = [name for name in self._settings if name.startswith("bearer.auth.")]
        for name in names:
            self._value(name)
        if not names:
            return
        if "bearer.auth.client.id" in names or "bearer.auth.issuer.endpoint.url" in names:
            contents = {
                "clientId": "the value of bearer.auth.client.id",
                "clientSecret": "the value of bearer.auth.client.secret",
                "tokenUrl": "the value of bearer.auth.issuer.endpoint.url",
            }
            contents |= {"scope": "the value of bearer.auth.scope"} if "bearer.auth.scope" in names else {}
        else:
            contents = {"token": "the value of bearer.auth.token"}
        for option, key in (("logical.cluster", "logicalCluster"), ("identity.pool.id", "identityPool")):
            if f"bearer.auth.{option}" in names:
                contents[key] = f"the value of bearer.auth.{option}"
        self._credentials(contents, "bearer.auth.*")

    def _tls(self, trust: str, key_store: str) -> None:
        of_trust = [name for name in self._settings if name.startswith(trust)]
        of_key = [name for name in self._settings if key_store and name.startswith(key_store)]
        for name in (*of_trust, *of_key):
            self._value(name)
        if of_trust:
            secret = self._plan.create("registry-ca", {"ca.crt": f"the certificates of {of_trust[0]}, as PEM"})
            self._put("caSecret", {"secret": secret, "key": "ca.crt"}, of_trust[0])
        if of_key:
            contents = {
                "tls.crt": f"the certificate of {of_key[0]}, as PEM",
                "tls.key": "its key, as PEM without a password",
            }
            self._put("clientSecret", {"secret": self._plan.create("registry-client", contents)}, of_key[0])

    def _class(self, name: str, path: str, choices: Mapping[str, str]) -> None:
        value = self._value(name)
        if not value:
            return
        try:
            self._put(path, parse_choice(simple_name(value), choices), name)
        except ValueError:
            self._draft.different(PREFIX + name, "this class has no counterpart; the default is used")

    def _apicurio(self) -> None:
        if value := self._value("apicurio.registry.use-id"):
            try:
                self._put("useId", parse_choice(value, _USE_ID), "apicurio.registry.use-id")
            except ValueError as error:
                self._draft.different(PREFIX + "apicurio.registry.use-id", f"{error}; ContentId is used")
        if self._value("apicurio.registry.headers.enabled").lower() == "true":
            self._put("idIn", "Either", "apicurio.registry.headers.enabled")
        login = [name for name in self._settings if name.startswith(("apicurio.registry.auth.", "apicurio.auth."))]
        for name in login:
            self._value(name)
        if any("client" in name or "token" in name for name in login):
            contents = {
                "clientId": "the client id",
                "clientSecret": "the client secret",
                "tokenUrl": "the token endpoint",
            }
            self._credentials(contents, login[0])
        elif login:
            self._credentials({"username": "the user", "password": "the password"}, login[0])
        self._value("apicurio.registry.tls.certificates")
        if "apicurio.registry.tls.certificates" in self._settings:
            self._tls("apicurio.registry.tls.certificates", "")
        self._tls("apicurio.registry.tls.truststore.", "")

    def _glue(self) -> None:
        region = self._value("region")
        try:
            check_region(region)
        except ValueError as error:
            self._draft.different(PREFIX + "region", f"{error}", "write the region of the registry")
            region = BY_HAND
        self._put("region", region, "region")
        name = self._value("registry.name")
        if _REGISTRY_NAME.fullmatch(name):
            self._put("name", name, "registry.name")
        elif name:
            message = "is not the name of a registry of AWS Glue; it is left out, so all registries are read"
            self._draft.different(PREFIX + "registry.name", message, "write format.registry.name")
        if self._value("endpoint"):
            self._urls("endpoint")


_REGISTRY_NAME: Final = re.compile(r"[a-zA-Z0-9_$#.-]{1,255}")
_MAX_URL: Final = 512
_SUBJECTS: Final = {
    "topicnamestrategy": "TopicName",
    "recordnamestrategy": "RecordName",
    "topicrecordnamestrategy": "TopicRecordName",
}
_ID_DESERIALIZERS: Final = {"dualschemaiddeserializer": "Either", "prefixschemaiddeserializer": "Value"}
_USE_ID: Final = {"contentid": "ContentId", "globalid": "GlobalId"}


def is_url(text: str) -> bool:
    """True for a URL with http or https and a host."""
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        return False
    plain = len(text) <= _MAX_URL and text.isprintable() and not any(each.isspace() for each in text)
    return (
        url.scheme in ("http", "https")
        and bool(url.hostname)
        and port != 0
        and plain
        and not (url.query or url.fragment)
    )


def without_login(text: str) -> tuple[str, bool]:
    """A URL without user and password, and whether it had them."""
    try:
        url = urlsplit(text)
    except ValueError:
        return "", "@" in text
    if "@" not in url.netloc:
        return text, False
    return urlunsplit(url._replace(netloc=url.netloc.rpartition("@")[2])), True
