"""The rows of the table for the settings of value converters, without the prefix `value.converter.`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sink_job.migrate.table import KeyOwner, KeyRow, Treatment, ValueForm

_DEFAULTS = "none: always the default"
_PRODUCERS = "none: only producers use it. The sink registers no schema"
_KEPT = "none: schemas are kept in the ledger and in the processes"
_REGISTRY = "format.registry"


def _field(
    owner: KeyOwner, key: str, path: str, form: ValueForm = ValueForm.TEXT, note: str = "", link: str = ""
) -> KeyRow:
    return KeyRow(key, Treatment.FIELD, f"{_REGISTRY}.{path}", form, note, link, owner=owner)


def _ignored(owner: KeyOwner, keys: str, note: str) -> Iterable[KeyRow]:
    return [KeyRow(key, Treatment.NO_EFFECT, note=note, owner=owner) for key in keys.split()]


def _different(owner: KeyOwner, keys: str, note: str, default: str = "", *, secret: bool = False) -> Iterable[KeyRow]:
    form = ValueForm.SECRET if secret else ValueForm.TEXT
    return [
        KeyRow(key, Treatment.DIFFERENT, form=form, note=note, default=default, owner=owner) for key in keys.split()
    ]


_PEM = "PEM instead of a key store"
_LOGIN = "names a secret"

CONVERTER_KEYS: Final[tuple[KeyRow, ...]] = (
    # JsonConverter, StringConverter
    *_ignored(KeyOwner.JSON_CONVERTER, "schemas.enable", "`format.converter`: `ConnectJson`, or `Json` with `false`"),
    *_ignored(KeyOwner.JSON_CONVERTER, "schemas.cache.size converter.type", _KEPT),
    *_ignored(KeyOwner.JSON_CONVERTER, "decimal.format", "none: both forms are read"),
    *_different(
        KeyOwner.JSON_CONVERTER, "replace.null.with.default", "none: a null takes the default of its field", "true"
    ),
    *_different(KeyOwner.STRING_CONVERTER, "encoding", "none: text is UTF-8", "UTF-8"),
    *_different(KeyOwner.STRING_CONVERTER, "converter.encoding", "none: text is UTF-8", "UTF-8"),
    *_ignored(
        KeyOwner.STRING_CONVERTER, "schemas.enable schemas.cache.size converter.type", "this converter does not use it"
    ),
    # Confluent's converters
    _field(KeyOwner.CONFLUENT, "schema.registry.url", "url", ValueForm.SPECIAL),
    _field(
        KeyOwner.CONFLUENT,
        "basic.auth.user.info",
        "credentials",
        ValueForm.SECRET,
        link="([keys of the Secret](schemas.md#credentials))",
    ),
    _field(
        KeyOwner.CONFLUENT,
        "bearer.auth.*",
        "credentials",
        ValueForm.SECRET,
        link="([keys of the Secret](schemas.md#credentials))",
    ),
    _field(KeyOwner.CONFLUENT, "schema.registry.ssl.truststore.*", "caSecret", ValueForm.SECRET, _PEM),
    _field(KeyOwner.CONFLUENT, "schema.registry.ssl.keystore.*", "clientSecret", ValueForm.SECRET, _PEM),
    _field(KeyOwner.CONFLUENT, "value.subject.name.strategy", "subjects", ValueForm.CLASS),
    _field(KeyOwner.CONFLUENT, "value.schema.id.deserializer", "idIn", ValueForm.CLASS),
    _field(KeyOwner.CONFLUENT, "basic.auth.credentials.source", "credentials", ValueForm.SPECIAL, _LOGIN),
    *_ignored(
        KeyOwner.CONFLUENT,
        "auto.register.schemas use.schema.id id.compatibility.strict latest.compatibility.strict normalize.schemas "
        "value.schema.id.serializer key.schema.id.serializer key.subject.name.strategy reference.subject.name.strategy "
        "json.schema.spec.version json.oneof.for.nullables json.write.dates.iso8601 avro.remove.java.properties "
        "max.schemas.per.subject avro.use.logical.type.converters",
        _PRODUCERS,
    ),
    *_ignored(KeyOwner.CONFLUENT, "schemas.enable converter.type", "this converter does not use it"),
    *_ignored(KeyOwner.CONFLUENT, "schemas.cache.config schemas.cache.size schema.registry.cache.*", _KEPT),
    *_ignored(KeyOwner.CONFLUENT, "decimal.format", "none: `format.decimals` is for all converters"),
    *_ignored(
        KeyOwner.CONFLUENT,
        "connect.meta.data schema.registry.ssl.protocol schema.registry.ssl.enabled.protocols",
        _DEFAULTS,
    ),
    *_different(
        KeyOwner.CONFLUENT,
        "enhanced.avro.schema.support scrub.invalid.names discard.type.doc.default ignore.default.for.nullables "
        "allow.optional.map.keys generalized.sum.type.support flatten.unions "
        "use.optional.for.nonrequired enhanced.protobuf.schema.support generate.struct.for.nulls int.for.enums "
        "optional.for.nullables wrapper.for.nullables",
        _DEFAULTS,
        "false",
    ),
    *_different(
        KeyOwner.CONFLUENT,
        "flatten.singleton.unions generate.index.for.unions object.additional.properties optional.for.proto2 "
        "wrapper.for.raw.primitives",
        _DEFAULTS,
        "true",
    ),
    *_different(
        KeyOwner.CONFLUENT, "use.latest.version", "none: a value is read with the schema that it names", "false"
    ),
    *_different(KeyOwner.CONFLUENT, "use.latest.with.metadata", "none: a value is read with the schema that it names"),
    *_different(
        KeyOwner.CONFLUENT, "json.fail.invalid.schema", "none: JSON is not validated against its schema", "false"
    ),
    *_different(KeyOwner.CONFLUENT, "replace.null.with.default", "none: a null takes the default of its field", "true"),
    *_different(
        KeyOwner.CONFLUENT,
        "context.name.strategy subject.name.strategy rule.executors rule.executors.* rule.actions",
        "none: contexts, strategies of one's own and encryption of fields are not supported",
    ),
    *_different(KeyOwner.CONFLUENT, "proxy.host proxy.port", "none: there is no proxy for the registry"),
    # Apicurio's
    _field(KeyOwner.APICURIO, "apicurio.registry.url", "url", ValueForm.SPECIAL),
    _field(
        KeyOwner.APICURIO,
        "apicurio.registry.use-id",
        "useId",
        ValueForm.CHOICE,
        "`contentId`, `globalId`. The default is that of version 3; Apicurio 2 has `globalId`",
    ),
    _field(
        KeyOwner.APICURIO,
        "apicurio.registry.headers.enabled",
        "idIn",
        ValueForm.SPECIAL,
        "By default both are read (3.x writes ids into values, 2.x into headers)",
    ),
    _field(
        KeyOwner.APICURIO,
        "apicurio.registry.auth.username",
        "credentials",
        ValueForm.SECRET,
        "`username`, `password` (2.x: `apicurio.auth.*`)",
    ),
    _field(
        KeyOwner.APICURIO,
        "apicurio.registry.auth.password",
        "credentials",
        ValueForm.SECRET,
        "`username`, `password` (2.x: `apicurio.auth.*`)",
    ),
    _field(
        KeyOwner.APICURIO,
        "apicurio.registry.auth.*",
        "credentials",
        ValueForm.SECRET,
        "`tokenUrl`, `clientId`, `clientSecret`, `scope`",
    ),
    _field(KeyOwner.APICURIO, "apicurio.auth.*", "credentials", ValueForm.SECRET, "`username`, `password`"),
    _field(KeyOwner.APICURIO, "apicurio.registry.tls.truststore.*", "caSecret", ValueForm.SECRET, "PEM"),
    _field(KeyOwner.APICURIO, "apicurio.registry.tls.certificates", "caSecret", ValueForm.SECRET, "PEM"),
    *_different(
        KeyOwner.APICURIO, "apicurio.registry.tls.trust-all", "none: certificates are always verified", "false"
    ),
    *_ignored(
        KeyOwner.APICURIO,
        "apicurio.registry.id-handler apicurio.registry.as-confluent",
        "none: ids of 4 and of 8 bytes are recognized",
    ),
    *_different(
        KeyOwner.APICURIO,
        "apicurio.registry.headers.handler apicurio.registry.headers.*",
        "none: always the default names",
    ),
    *_different(KeyOwner.APICURIO, "apicurio.registry.avro.encoding", "JSON is not supported: data errors", "BINARY"),
    *_different(
        KeyOwner.APICURIO,
        "apicurio.registry.fallback.* apicurio.registry.use-schema-from-headers",
        "none: a record needs an id",
    ),
    *_ignored(
        KeyOwner.APICURIO,
        "apicurio.registry.auto-register apicurio.registry.auto-register.* apicurio.registry.find-latest "
        "apicurio.registry.artifact-resolver-strategy apicurio.registry.artifact.*",
        _PRODUCERS,
    ),
    *_ignored(
        KeyOwner.APICURIO,
        "apicurio.registry.check-period-ms apicurio.registry.retry-*",
        "none: schemas are kept in the ledger; requests are tried again for two minutes",
    ),
    *_ignored(
        KeyOwner.APICURIO,
        "apicurio.registry.converter.* schemas.enable converter.type",
        "this converter does not need it",
    ),
    # AWS Glue's
    _field(KeyOwner.GLUE, "region", "region"),
    _field(
        KeyOwner.GLUE,
        "registry.name",
        "name",
        ValueForm.TEXT,
        "The converter reads schemas of all registries; here a schema of another registry stops the sink. Leave `name` "
        "out to read all",
    ),
    _field(KeyOwner.GLUE, "endpoint", "url", ValueForm.SPECIAL),
    *_ignored(KeyOwner.GLUE, "compression compressionType", "none: both forms are read"),
    *_ignored(
        KeyOwner.GLUE,
        "schemaName schemaAutoRegistrationEnabled compatibility dataFormat description tags metadata "
        "schemaNameGenerationClass schemas.enable converter.type cacheItemExpirationTime",
        _PRODUCERS,
    ),
    *_different(KeyOwner.GLUE, "avroRecordType", "none", "GENERIC_RECORD"),
    *_different(KeyOwner.GLUE, "protobufMessageType jackson.*", "none"),
    *_different(KeyOwner.GLUE, "secondaryDeserializer", "none: values with another wire format are data errors"),
    *_ignored(KeyOwner.GLUE, "timeToLiveMillis cacheSize", "none: schemas are kept in the ledger"),
    *_different(KeyOwner.GLUE, "proxyUrl", "none"),
)
