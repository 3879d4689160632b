"""The CEL rules of the CustomResourceDefinition, each with the message that the user reads.

They repeat checks of `sink_job.api`, so that an error is reported by `kubectl apply` and not later in a condition. They
reject nothing that the job accepts, except changes of immutable fields. Lists of words (types with a time, properties
that the sink sets) come from the tables of the job. Sizes are compared with `quantity()`, which accepts integers and
strings; durations with `duration()`, which has no days.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Final

from s3sink_operator.crd.cel import LOOPBACK_URL, CelRule, cel_list, cel_size, cel_text, compare_duration, either
from s3sink_operator.crd.dead_letter_rules import dead_letter_rules
from s3sink_operator.crd.login_rules import login_rules
from s3sink_operator.crd.names_rules import names_rules
from s3sink_operator.crd.null_value_rules import null_value_rules
from s3sink_operator.crd.s3_access_rules import s3_access_rules
from s3sink_operator.crd.transform_rules import transform_rules
from s3sink_operator.names import MAX_SINK_NAME
from sink_job.api.enums import (
    ConverterType,
    ExecutorMode,
    OutputFormat,
    PartitionerType,
    ResetTo,
    ScalingMode,
    TimestampExtractor,
)
from sink_job.api.field_types import RESERVED
from sink_job.api.rules.compressions import COMPRESSIONS, LEVELS, Levels, has_levels
from sink_job.api.rules.reserved_properties import (
    BY_POD,
    BY_SECRET,
    KAFKA_OWNED,
    LOGIN,
    LOGIN_SECRETS,
    SECRET_NAMES,
    SPARK_OWNED,
    SPARK_OWNED_PREFIXES,
)
from sink_job.api.sections.record_fields import FORMS
from sink_job.api.units.quantities import DAY, HOUR, format_duration
from sink_job.api.units.s3_limits import MAX_PARTS

_TIMED: Final = cel_list(kind for kind in PartitionerType if kind.uses_time)
_FIELDED: Final = cel_list(kind for kind in PartitionerType if kind.uses_fields)
_OWN: Final = cel_list([PartitionerType.TIME, PartitionerType.FIELD_AND_TIME])
_PLAIN: Final = cel_list([ConverterType.TEXT, ConverterType.BYTES])
_RECORD_FIELD: Final = r"'^[$](key([.].+)?|(header|value)[.].+|topic|partition)$'"
_SERVER: Final = r"\\s*(\\[[0-9a-fA-F:.%]+\\]|[A-Za-z0-9._-]+):[0-9]{1,5}\\s*"


def _object() -> Iterator[CelRule]:
    name = "self.metadata.name"
    yield CelRule(
        "",
        f"{name}.size() <= {MAX_SINK_NAME}",
        f"metadata.name is longer than {MAX_SINK_NAME} characters: the names of its pods contain it and are limited "
        "to 63 characters; choose a shorter name",
    )
    yield CelRule(
        "",
        f"!{name}.contains('.')",
        "metadata.name has a dot: the names of its pods contain it and are host names; use -",
    )


def _unchanged(path: str, name: str, why: str, *, optional: bool = False) -> CelRule:
    same = f"self.{name} == oldSelf.{name}"
    if optional:
        same = f"has(self.{name}) == has(oldSelf.{name}) && (!has(self.{name}) || {same})"
    says = f"{path}.{name} is immutable: {why}; restore the previous value, or create another S3Sink"
    return CelRule(path, same, says)


def _identity() -> Iterator[CelRule]:
    yield _unchanged("spec.s3", "bucket", "the ledger and the open objects are in the previous bucket")
    yield _unchanged("spec.s3", "topicsDir", "the ledger and the open objects are below the previous one")
    yield CelRule(
        "spec.s3",
        "has(self.ledger) == has(oldSelf.ledger) && (!has(self.ledger) || (self.ledger.bucket == oldSelf.ledger.bucket "
        "&& has(self.ledger.prefix) == has(oldSelf.ledger.prefix) && (!has(self.ledger.prefix) || self.ledger.prefix "
        "== oldSelf.ledger.prefix)))",
        "spec.s3.ledger is immutable, except for its credentials: the ledger is in the previous place; restore the "
        "previous value, or create another S3Sink",
    )
    yield _unchanged("spec.kafka", "groupId", "the committed offsets belong to the previous group", optional=True)
    yield _unchanged("spec", "sinkId", "the ledger has the previous name", optional=True)


def _kafka() -> Iterator[CelRule]:
    here, secrets = "spec.kafka", "spec.kafka.propertySecrets"
    yield CelRule(
        f"{here}.bootstrapServers",
        f"self.matches('^{_SERVER}(,{_SERVER})*$')",
        f"{here}.bootstrapServers is not a list of brokers: write host:port, separated by commas, without a protocol",
    )
    yield CelRule(
        here,
        "has(self.topics) || has(self.topicsPattern)",
        f"{here} has no topics: set topics or topicsPattern",
    )
    yield CelRule(
        here,
        "!has(self.topics) || !has(self.topicsPattern)",
        f"{here}.topicsPattern cannot be combined with topics: set one of them",
    )
    yield CelRule(
        f"{here}.topics",
        f"self.all(topic, !(topic in {cel_list(['.', '..', RESERVED])}))",
        f"{here}.topics contains . or .., which Kafka does not allow, or {RESERVED}, which is reserved: remove it",
    )
    yield CelRule(
        f"{here}.properties",
        "self.all(name, !name.startsWith('kafka.'))",
        f"{here}.properties has a property with the prefix kafka.: remove the prefix",
    )
    yield from _owned(f"{here}.properties", KAFKA_OWNED)
    yield _without_secrets(f"{here}.properties", BY_SECRET)
    yield CelRule(
        f"{here}.properties",
        f"!({cel_text(LOGIN)} in self) || !self[{cel_text(LOGIN)}].matches({cel_text(LOGIN_SECRETS)})",
        f"{here}.properties: {LOGIN} with a password is not allowed here: {BY_SECRET}",
    )
    yield CelRule(
        secrets,
        f"self.all(each, !each.name.startsWith('kafka.') && !(each.name in {cel_list(KAFKA_OWNED)}))",
        f"{secrets} has a property that cannot be set, as in {here}.properties: remove it",
    )
    yield CelRule(
        here,
        "!has(self.properties) || !has(self.propertySecrets) "
        "|| self.propertySecrets.all(each, !(each.name in self.properties))",
        f"{secrets} has a property that is also in {here}.properties: set it once",
    )


def _owned(path: str, owned: Mapping[str, str]) -> Iterator[CelRule]:
    """One rule for each reason not to set a property, with its properties."""
    by_reason = sorted(owned, key=lambda name: (owned[name], name))
    for why, names in itertools.groupby(by_reason, key=owned.__getitem__):
        group = list(names)
        absent = (
            f"!({cel_text(group[0])} in self)" if len(group) == 1 else f"{cel_list(group)}.all(name, !(name in self))"
        )
        yield CelRule(path, absent, f"{path}: {', '.join(group)} cannot be set here: {why}")


def _without_secrets(path: str, why: str) -> CelRule:
    return CelRule(
        path,
        f"self.all(name, !name.matches({cel_text(SECRET_NAMES)}))",
        f"{path} has a password or another secret, which is not allowed here: {why}",
    )


def _spark() -> Iterator[CelRule]:
    here = "spec.sparkConf"
    yield CelRule(
        here,
        "self.all(name, name.startsWith('spark.'))",
        f"{here} has a property that is not of Spark: use names that begin with spark.",
    )
    yield from _owned(here, SPARK_OWNED)
    for start, why in SPARK_OWNED_PREFIXES.items():
        cel = f"self.all(name, !name.startsWith({cel_text(start)}))"
        yield CelRule(here, cel, f"{here}: {start}* cannot be set here: {why}")
    yield _without_secrets(here, BY_POD)


def _partitioner() -> Iterator[CelRule]:
    here = "spec.partitioner"
    yield from _field_list(f"{here}.fields")
    for name, each in (("fields", "self.all(field, {})"), ("timestampField", "{}")):
        field = "field" if name == "fields" else "self"
        yield CelRule(
            f"{here}.{name}",
            each.format(f"!{field}.startsWith('$') || {field}.matches({_RECORD_FIELD})"),
            f"{here}.{name} has a name with $ that is not a field of a record: use {FORMS}",
        )
    yield CelRule(
        here,
        either("has(self.fields)", f"!(self.type in {_FIELDED})"),
        f"{here}.fields is missing: the types Field and FieldAndTime require at least one",
    )
    yield CelRule(
        here,
        either("!has(self.fields)", f"self.type in {_FIELDED}"),
        f"{here}.fields has no effect with this type: remove it, or choose Field or FieldAndTime",
    )
    for name, example in (("duration", "1h"), ("pathFormat", "'year'=YYYY/'month'=MM/'day'=dd")):
        yield CelRule(
            here,
            either(f"has(self.{name})", f"!(self.type in {_OWN})"),
            f"{here}.{name} is missing: the types Time and FieldAndTime require it, such as {example}",
        )
        yield CelRule(
            here,
            either(f"!has(self.{name})", f"self.type in {_TIMED}"),
            f"{here}.{name} has no effect with a type without time: remove it, or choose Time",
        )
    yield CelRule(
        here,
        either("has(self.timezone)", f"!(self.type in {_TIMED})"),
        f"{here}.timezone is missing: a type with time requires it, such as UTC",
    )
    for kind, ms in ((PartitionerType.HOURLY, HOUR), (PartitionerType.DAILY, DAY)):
        yield CelRule(
            here,
            either(f"self.type != '{kind}'", "!has(self.duration)", compare_duration("self.duration", "==", ms)),
            f"{here}.duration is not allowed: the type {kind} has {format_duration(ms)}; remove it, or choose Time",
        )


def _compressions() -> Iterator[CelRule]:
    """One rule for each list of codecs, with the outputs that have these."""
    here = "spec.format"
    for codecs in dict.fromkeys(COMPRESSIONS.values()):
        outputs = [output for output, found in COMPRESSIONS.items() if found == codecs]
        yield CelRule(
            here,
            either(
                f"!(self.output in {cel_list(outputs)})",
                "!has(self.compression)",
                f"self.compression.codec in {cel_list(codecs)}",
            ),
            f"{here}.compression.codec is no codec of output {' or '.join(outputs)}: use {', '.join(codecs)}",
        )


def _levels() -> Iterator[CelRule]:
    """Which codecs have levels, and which ones."""
    here = "spec.format.compression"
    codecs_by_levels: dict[Levels, list[str]] = {}
    for codec, levels in LEVELS.items():
        codecs_by_levels.setdefault(levels, []).append(codec)
    allowed = [
        f"self.codec in {cel_list(codecs)} && self.level >= {levels.lowest} && self.level <= {levels.highest}"
        for levels, codecs in codecs_by_levels.items()
    ]
    ranges = [f"{one.lowest} to {one.highest} for {' and '.join(codecs)}" for one, codecs in codecs_by_levels.items()]
    yield CelRule(
        here,
        either("!has(self.level)", *allowed),
        f"{here}.level is not allowed: {', '.join(ranges)}, none for other codecs",
    )
    for output, codec in itertools.product(COMPRESSIONS, LEVELS):
        if codec in COMPRESSIONS[output] and not has_levels(output, codec):
            yield CelRule(
                "spec.format",
                either(
                    f"self.output != '{output}'",
                    "!has(self.compression)",
                    f"self.compression.codec != '{codec}'",
                    "!has(self.compression.level)",
                ),
                f"{here}.level has no effect: {codec} in {output} has no levels; remove it",
            )


def _sections() -> Iterator[CelRule]:
    """The sections of one output each."""
    here = "spec.format"
    for output in (OutputFormat.PARQUET, OutputFormat.AVRO, OutputFormat.BYTES):
        name = output.lower()
        yield CelRule(
            here,
            either(f"self.output == '{output}'", f"!has(self.{name})"),
            f"{here}.{name} has no effect without the output {output}: remove it",
        )
    yield from _field_list(f"{here}.parquet.bloomFilters")


def _field_list(path: str) -> Iterator[CelRule]:
    yield CelRule(
        path,
        "self.all(field, self.exists_one(other, other == field))",
        f"{path} has a duplicate field: remove it",
    )
    yield CelRule(
        path,
        "self.all(field, !('' in field.split('.')))",
        f"{path} has an empty segment: separate field names with single dots",
    )


def _fixed_paths() -> Iterator[CelRule]:
    here = "self.partitioner.pathFormat"
    for kind in (PartitionerType.HOURLY, PartitionerType.DAILY):
        elements = (kind.path_format("/") or "").split("/")
        joined = " + self.s3.directoryDelimiter + ".join(cel_text(element) for element in elements)
        own = f"{here} in [{cel_text('/'.join(elements))}, {joined}]"
        yield CelRule(
            "spec",
            either(f"self.partitioner.type != '{kind}'", "!has(self.partitioner.pathFormat)", own),
            f"spec.partitioner.pathFormat is not allowed: the type {kind} has its own; remove it, or choose Time",
        )


def _values_with_fields() -> Iterator[CelRule]:
    plain = f"!(self.format.converter in {_PLAIN})"
    of_value = "(!{0}.startsWith('$') || {0}.startsWith('$value.'))"
    fields = f"has(self.partitioner.fields) && self.partitioner.fields.exists(field, {of_value.format('field')})"
    why = "requires fields of the value, which the converters Text and Bytes do not provide"
    yield CelRule(
        "spec",
        either(plain, f"!(self.partitioner.type in {_FIELDED})", f"!({fields})"),
        f"spec.partitioner.type {why}: use another converter, or another type",
    )
    record_field = f"self.partitioner.timestampExtractor == '{TimestampExtractor.RECORD_FIELD}'"
    yield CelRule(
        "spec",
        either(
            plain,
            f"!(self.partitioner.type in {_TIMED})",
            f"!({record_field})",
            f"!{of_value.format('self.partitioner.timestampField')}",
        ),
        f"spec.partitioner.timestampExtractor RecordField {why}: use another converter, or Record or Wallclock",
    )


def _rotation() -> Iterator[CelRule]:
    here, partitioner = "spec.rotation", "self.partitioner"
    ends = ("flushSize", "interval", "scheduleInterval", "maxBytes")
    # Not at spec.rotation itself: its empty default has to pass the rules there.
    yield CelRule(
        "spec",
        " || ".join(f"has(self.rotation.{name})" for name in ends),
        f"{here}: no setting closes objects: set at least one of {', '.join(ends)}",
    )
    yield CelRule(
        "spec",
        either("!has(self.rotation.interval)", f"{partitioner}.type in {_TIMED}"),
        f"{here}.interval has no effect: the type of spec.partitioner has no time; use scheduleInterval, or the "
        "type Time, Hourly, Daily or FieldAndTime",
    )
    # A type with time requires a time zone in a rule of its own.
    yield CelRule(
        "spec",
        either(
            "!has(self.rotation.scheduleInterval)", f"has({partitioner}.timezone)", f"{partitioner}.type in {_TIMED}"
        ),
        "spec.partitioner.timezone is missing: spec.rotation.scheduleInterval starts at midnight of it; set one such "
        "as UTC",
    )
    # As floats, since a quantity cannot be multiplied; with a margin, since floats are not exact.
    limit = f"{MAX_PARTS + 0.0001} * {cel_size('self.s3.partSize')}.asApproximateFloat()"
    fits = f"{cel_size('self.rotation.maxBytes')}.asApproximateFloat() <= {limit}"
    yield CelRule(
        "spec",
        either("!has(self.rotation.maxBytes)", fits),
        f"{here}.maxBytes exceeds {MAX_PARTS} parts of spec.s3.partSize: decrease it, or increase partSize",
    )


def _s3() -> Iterator[CelRule]:
    here = "spec.s3"
    yield CelRule(
        f"{here}.bucket", "!self.contains('..')", f"{here}.bucket has two consecutive dots, which S3 does not allow"
    )
    yield CelRule(
        f"{here}.topicsDir",
        f"self == '' || self.split('/').all(element, !(element in {cel_list(['', '.', '..', RESERVED])}))",
        f"{here}.topicsDir has an element that is empty, . or .., or {RESERVED}, which is reserved for ledgers: remove "
        "it",
    )
    yield CelRule(
        here,
        either(
            "!has(self.endpoint)",
            "has(self.insecure) && self.insecure",
            "!self.endpoint.startsWith('http://')",
            f"self.endpoint.matches({LOOPBACK_URL})",
        ),
        f"{here}.endpoint is not encrypted: use https://, or set {here}.insecure: true",
    )
    for name in ("directoryDelimiter", "fileDelimiter"):
        yield CelRule(
            f"{here}.{name}",
            "!self.contains('%')",
            f"{here}.{name} has a %, which is reserved for escaped characters in keys: use another one",
        )
    yield CelRule(
        f"{here}.directoryDelimiter",
        f"!self.contains('{RESERVED}')",
        f"{here}.directoryDelimiter has {RESERVED}, which is reserved for ledgers: use another one",
    )
    yield CelRule(
        f"{here}.fileDelimiter",
        "!self.matches('[0-9]')",
        f"{here}.fileDelimiter has a digit, which is ambiguous with the partition and the offset: use another one",
    )
    yield CelRule(
        here,
        "!self.fileDelimiter.contains(self.directoryDelimiter) "
        "&& !self.directoryDelimiter.contains(self.fileDelimiter)",
        f"{here}.fileDelimiter and directoryDelimiter are ambiguous: neither may contain the other",
    )
    yield CelRule(
        here,
        "self.directoryDelimiter == '/' || !self.topicsDir.startsWith(self.directoryDelimiter) "
        "&& !self.topicsDir.endsWith(self.directoryDelimiter)",
        f"{here}.topicsDir begins or ends with directoryDelimiter: remove it",
    )


def _rest() -> Iterator[CelRule]:
    yield CelRule(
        "spec.rounds",
        f"{cel_size('self.minBytes')}.compareTo({cel_size('self.maxBytes')}) <= 0",
        "spec.rounds.minBytes is above spec.rounds.maxBytes: decrease it, or increase maxBytes",
    )
    yield CelRule(
        "spec.executor.memory",
        either("!has(self.min)", "!has(self.max)", f"{cel_size('self.min')}.compareTo({cel_size('self.max')}) <= 0"),
        "spec.executor.memory.min is above spec.executor.memory.max: decrease it, or increase max",
    )
    yield from _scaling()
    yield CelRule(
        "spec.serviceAccount",
        either("!has(self.name)", "!has(self.annotations)", "self.annotations.size() == 0"),
        "spec.serviceAccount.annotations has no effect with name: annotate that ServiceAccount, or remove name",
    )
    yield CelRule(
        "spec.sinkId",
        "!self.contains('..') && self != 'topics'",
        "spec.sinkId contains .. or is topics, which is reserved: choose another one",
    )
    yield from _reset()


def _scaling() -> Iterator[CelRule]:
    """`instances` is the scale subresource: the second rule is the answer to `kubectl scale` and to autoscalers. The
    default of the schema is 1, so a missing number is one."""
    here, auto = "spec.executor", f"self.scaling.mode != '{ScalingMode.AUTO}'"
    yield CelRule(
        f"{here}.scaling",
        "self.minInstances <= self.maxInstances",
        f"{here}.scaling.minInstances is above maxInstances: decrease it, or increase maxInstances",
    )
    yield CelRule(
        here,
        either(auto, "self.instances == 1"),
        f"{here}.instances has no effect with scaling.mode: Auto: remove it, or set scaling.minInstances and "
        "maxInstances",
    )
    yield CelRule(
        here,
        either(auto, f"self.mode != '{ExecutorMode.LOCAL}'"),
        f"{here}.scaling.mode is Auto, which has no effect in Local mode: there are no executors; write Fixed, or "
        "executor.mode: Cluster",
    )


def _reset() -> Iterator[CelRule]:
    here = "spec.offsets.reset"
    for name, kind in (("timestamp", ResetTo.TIMESTAMP), ("partitions", ResetTo.OFFSETS)):
        yield CelRule(
            here,
            either(f"self.to != '{kind}'", f"has(self.{name})"),
            f"{here}.{name} is missing: to: {kind} requires it",
        )
        yield CelRule(
            here,
            either(f"self.to == '{kind}'", f"!has(self.{name})"),
            f"{here}.{name} has no effect without to: {kind}: remove it, or set to: {kind}",
        )


RULES: Final[tuple[CelRule, ...]] = (
    *_object(),
    *_identity(),
    *_kafka(),
    *login_rules(),
    *_partitioner(),
    *_compressions(),
    *_levels(),
    *_sections(),
    *_fixed_paths(),
    *_values_with_fields(),
    *_rotation(),
    *_s3(),
    *s3_access_rules(),
    *dead_letter_rules(),
    *names_rules(),
    *null_value_rules(),
    *transform_rules(),
    *_rest(),
    *_spark(),
)
"""All rules except the bounds of sizes and durations, which come from the schema."""
