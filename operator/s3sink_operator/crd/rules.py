"""What the API server itself refuses, in CEL, each rule with the sentence that the user reads.

They repeat `sink_job.api` as far as that is cheap, so that a mistake shows at `kubectl apply` and not a moment later in
a condition; they refuse nothing that the job would take, save what may not change any more. Lists of words (types that
have a time, properties that the sink sets) are taken from the job's own tables. Sizes are compared by `quantity()`,
which reads whole numbers and texts alike; durations by `duration()`, which knows no days.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from s3sink_operator.names import LONGEST_SINK
from sink_job.api.enums import ConverterType, PartitionerType, ResetTo, TimestampExtractor, Tolerance
from sink_job.api.field_types import RESERVED
from sink_job.api.quantities import DAY, HOUR, format_duration, parse_duration
from sink_job.api.reserved_properties import (
    BY_POD,
    BY_SECRET,
    KAFKA_OWNED,
    LOGIN,
    LOGIN_SECRETS,
    SECRET_NAMES,
    SPARK_OWNED,
    SPARK_OWNED_PREFIXES,
)
from sink_job.api.s3_limits import MAX_PARTS


@dataclasses.dataclass(frozen=True)
class Rule:
    """`path`: where `self` stands (`spec.kafka`; empty: the object). `says`: what is wrong and what to do."""

    path: str
    cel: str
    says: str

    def manifest(self) -> dict[str, Any]:
        """The rule as a CustomResourceDefinition writes it."""
        return {"rule": self.cel, "message": self.says}


def _list(words: Iterable[str]) -> str:
    return "[" + ", ".join(_text(word) for word in words) + "]"


def _text(word: str) -> str:
    """`word` as CEL writes it."""
    return json.dumps(word)


def _size(value: str) -> str:
    return f"quantity(string({value}))"


def _lasts(value: str, compared: str, ms: int) -> str:
    """Whether the duration in a text of ours is `<=` or `==` `ms`, a day at most: Go's notation has no days."""
    days = f"duration({value}.matches('^0*1d') ? '24h' : '0s')"
    rest = f"duration('0s' + {value}.substring({value}.indexOf('d') + 1))"
    few_days = f"(!{value}.contains('d') || {value}.matches('^0*1?d'))"
    return f"{few_days} && {days} + {rest} {compared} duration('{ms}ms')"


def bound(kind: str, path: str, which: str, limit: str) -> Rule:
    """The rule that holds a size or a duration at `path` above its `minimum` or below its `maximum`, `limit`."""
    most = which == "maximum"
    if kind == "size":
        cel = f"{_size('self')}.compareTo(quantity({_text(limit)})) {'<=' if most else '>='} 0"
    elif most:
        cel = _lasts("self", "<=", parse_duration(limit))
    elif limit == "1ms":
        cel = "self.matches('[1-9]')"
    else:
        raise ValueError(f"{path}: no rule for durations of at least {limit}")
    above = "above the maximum" if most else "below the minimum"
    return Rule(path, cel, f"{path} is {above} of {limit}: write {limit} or {'less' if most else 'more'}")


def _either(condition: str, *others: str) -> str:
    return " || ".join([condition, *others])


_TIMED: Final = _list(kind for kind in PartitionerType if kind.uses_time)
_FIELDED: Final = _list(kind for kind in PartitionerType if kind.uses_fields)
_OWN: Final = _list([PartitionerType.TIME, PartitionerType.FIELD_AND_TIME])
_PLAIN: Final = _list([ConverterType.TEXT, ConverterType.BYTES])
_HERE: Final = r"'(?i)^http://(([a-z0-9_.-]+[.])?localhost|127[.][0-9.]+|\\[[0:]*1\\])(:|/|$)'"
_SERVER: Final = r"\\s*(\\[[0-9a-fA-F:.%]+\\]|[A-Za-z0-9._-]+):[0-9]{1,5}\\s*"


def _object() -> Iterator[Rule]:
    name = "self.metadata.name"
    yield Rule(
        "",
        f"{name}.size() <= {LONGEST_SINK}",
        f"metadata.name is longer than {LONGEST_SINK} characters: the pods of the sink are named after it, with an "
        "attempt and a number behind it, and must still be host names of 63; choose a shorter name",
    )
    yield Rule("", f"!{name}.contains('.')", "metadata.name has a dot: it is a label of pods and a host name; use -")


def _unchanged(path: str, name: str, why: str, *, optional: bool = False) -> Rule:
    same = f"self.{name} == oldSelf.{name}"
    if optional:
        same = f"has(self.{name}) == has(oldSelf.{name}) && (!has(self.{name}) || {same})"
    says = f"{path}.{name} cannot be changed: {why}; write the old value back, or make another S3Sink"
    return Rule(path, same, says)


def _identity() -> Iterator[Rule]:
    yield _unchanged("spec.s3", "bucket", "the sink's ledger and its open objects are in the old bucket")
    yield _unchanged("spec.s3", "topicsDir", "the sink's ledger and its open objects are under the old one")
    yield _unchanged("spec.kafka", "groupId", "the sink's progress is shown under the old group", optional=True)
    yield _unchanged("spec", "sinkId", "the sink's ledger has the old name", optional=True)


def _kafka() -> Iterator[Rule]:
    here, secrets = "spec.kafka", "spec.kafka.propertySecrets"
    yield Rule(
        f"{here}.bootstrapServers",
        f"self.matches('^{_SERVER}(,{_SERVER})*$')",
        f"{here}.bootstrapServers is not a list of brokers: write host:port, separated by commas, without protocol",
    )
    yield Rule(
        here,
        "has(self.topics) || has(self.topicsPattern)",
        f"{here} says no topic to copy: give topics or topicsPattern",
    )
    yield Rule(
        here,
        "!has(self.topics) || !has(self.topicsPattern)",
        f"{here}.topicsPattern cannot stand beside topics: give one of the two",
    )
    yield Rule(
        f"{here}.topics",
        f"self.all(topic, !(topic in {_list(['.', '..', RESERVED])}))",
        f"{here}.topics has . or .., which Kafka does not allow, or {RESERVED}, where ledgers are: take it out",
    )
    yield Rule(
        f"{here}.properties",
        "self.all(name, !name.startsWith('kafka.'))",
        f"{here}.properties are written without the prefix kafka.: take it away",
    )
    yield from _owned(f"{here}.properties", KAFKA_OWNED)
    yield _without_secrets(f"{here}.properties", BY_SECRET)
    yield Rule(
        f"{here}.properties",
        f"!({_text(LOGIN)} in self) || !self[{_text(LOGIN)}].matches({_text(LOGIN_SECRETS)})",
        f"{here}.properties: {LOGIN} with a password cannot be written here: {BY_SECRET}",
    )
    yield Rule(
        secrets,
        f"self.all(each, !each.name.startsWith('kafka.') && !(each.name in {_list(KAFKA_OWNED)}))",
        f"{secrets} has a property that cannot be set there, as it could not in {here}.properties: take it out",
    )
    yield Rule(
        here,
        "!has(self.properties) || !has(self.propertySecrets) "
        "|| self.propertySecrets.all(each, !(each.name in self.properties))",
        f"{secrets} has a property that is also in {here}.properties: give it in one place",
    )


def _owned(path: str, owned: Mapping[str, str]) -> Iterator[Rule]:
    """One rule for each reason not to set a property, with the properties that it holds for."""
    by_reason = sorted(owned, key=lambda name: (owned[name], name))
    for why, names in itertools.groupby(by_reason, key=owned.__getitem__):
        group = list(names)
        absent = f"!({_text(group[0])} in self)" if len(group) == 1 else f"{_list(group)}.all(name, !(name in self))"
        yield Rule(path, absent, f"{path}: {', '.join(group)} cannot be set here: {why}")


def _without_secrets(path: str, why: str) -> Rule:
    return Rule(
        path,
        f"self.all(name, !name.matches({_text(SECRET_NAMES)}))",
        f"{path} has a password or another secret, which cannot be written here: {why}",
    )


def _spark() -> Iterator[Rule]:
    here = "spec.sparkConf"
    yield Rule(
        here,
        "self.all(name, name.startsWith('spark.'))",
        f"{here} has a name that is not a property of Spark: their names begin with spark.",
    )
    yield from _owned(here, SPARK_OWNED)
    for start, why in SPARK_OWNED_PREFIXES.items():
        cel = f"self.all(name, !name.startsWith({_text(start)}))"
        yield Rule(here, cel, f"{here}: {start}* cannot be set here: {why}")
    yield _without_secrets(here, BY_POD)


def _partitioner() -> Iterator[Rule]:
    here = "spec.partitioner"
    yield Rule(
        f"{here}.fields",
        "self.all(field, self.exists_one(other, other == field))",
        f"{here}.fields lists a field twice: take one of them out",
    )
    yield Rule(
        f"{here}.fields",
        "self.all(field, !('' in field.split('.')))",
        f"{here}.fields has an empty segment: write field names, separated by single dots",
    )
    yield Rule(
        here,
        _either("has(self.fields)", f"!(self.type in {_FIELDED})"),
        f"{here}.fields is missing: the types Field and FieldAndTime need at least one",
    )
    yield Rule(
        here,
        _either("!has(self.fields)", f"self.type in {_FIELDED}"),
        f"{here}.fields has no effect with this type: leave it out, or choose Field or FieldAndTime",
    )
    for name, example in (("duration", "1h"), ("pathFormat", "'year'=YYYY/'month'=MM/'day'=dd")):
        yield Rule(
            here,
            _either(f"has(self.{name})", f"!(self.type in {_OWN})"),
            f"{here}.{name} is missing: the types Time and FieldAndTime need it, such as {example}",
        )
        yield Rule(
            here,
            _either(f"!has(self.{name})", f"self.type in {_TIMED}"),
            f"{here}.{name} has no effect with a type that has no time: leave it out, or choose Time",
        )
    yield Rule(
        here,
        _either("has(self.timezone)", f"!(self.type in {_TIMED})"),
        f"{here}.timezone is missing: a type that has a time needs it, such as UTC",
    )
    for kind, ms in ((PartitionerType.HOURLY, HOUR), (PartitionerType.DAILY, DAY)):
        yield Rule(
            here,
            _either(f"self.type != '{kind}'", "!has(self.duration)", _lasts("self.duration", "==", ms)),
            f"{here}.duration cannot be: the type {kind} has {format_duration(ms)}; leave it out, or choose Time",
        )


def _fixed_paths() -> Iterator[Rule]:
    here = "self.partitioner.pathFormat"
    for kind in (PartitionerType.HOURLY, PartitionerType.DAILY):
        elements = (kind.path_format("/") or "").split("/")
        joined = " + self.s3.directoryDelimiter + ".join(_text(element) for element in elements)
        own = f"{here} in [{_text('/'.join(elements))}, {joined}]"
        yield Rule(
            "spec",
            _either(f"self.partitioner.type != '{kind}'", "!has(self.partitioner.pathFormat)", own),
            f"spec.partitioner.pathFormat cannot be: the type {kind} has its own; leave it out, or choose Time",
        )


def _values_with_fields() -> Iterator[Rule]:
    plain = f"!(self.format.converter in {_PLAIN})"
    why = "needs fields of the value, which the converters Text and Bytes do not give"
    yield Rule(
        "spec",
        _either(plain, f"!(self.partitioner.type in {_FIELDED})"),
        f"spec.partitioner.type {why}: use another converter, or another type",
    )
    record_field = f"self.partitioner.timestampExtractor == '{TimestampExtractor.RECORD_FIELD}'"
    yield Rule(
        "spec",
        _either(plain, f"!(self.partitioner.type in {_TIMED})", f"!({record_field})"),
        f"spec.partitioner.timestampExtractor RecordField {why}: use another converter, or Record or Wallclock",
    )


def _rotation() -> Iterator[Rule]:
    here, partitioner = "spec.rotation", "self.partitioner"
    ends = ("flushSize", "interval", "scheduleInterval", "maxBytes")
    # Not at spec.rotation itself: its default, nothing, has to pass the rules that stand there.
    yield Rule(
        "spec",
        " || ".join(f"has(self.rotation.{name})" for name in ends),
        f"{here}: nothing says when objects are complete: give at least one of {', '.join(ends)}",
    )
    yield Rule(
        "spec",
        _either("!has(self.rotation.interval)", f"{partitioner}.type in {_TIMED}"),
        f"{here}.interval would have no effect: the type of spec.partitioner has no time; use scheduleInterval, or "
        "the type Time, Hourly, Daily or FieldAndTime",
    )
    # A type that has a time asks for a zone by itself, in a sentence of its own.
    yield Rule(
        "spec",
        _either(
            "!has(self.rotation.scheduleInterval)", f"has({partitioner}.timezone)", f"{partitioner}.type in {_TIMED}"
        ),
        "spec.partitioner.timezone is missing: spec.rotation.scheduleInterval counts from midnight there; give one "
        "such as UTC",
    )
    # As floats, for a quantity cannot be multiplied, with a hair more than S3's limit, for floats are not exact.
    limit = f"{MAX_PARTS + 0.0001} * {_size('self.s3.partSize')}.asApproximateFloat()"
    fits = f"{_size('self.rotation.maxBytes')}.asApproximateFloat() <= {limit}"
    yield Rule(
        "spec",
        _either("!has(self.rotation.maxBytes)", fits),
        f"{here}.maxBytes does not fit into S3's {MAX_PARTS} parts of spec.s3.partSize: lower it, or raise partSize",
    )


def _s3() -> Iterator[Rule]:
    here = "spec.s3"
    yield Rule(f"{here}.bucket", "!self.contains('..')", f"{here}.bucket has two dots in a row: S3 does not allow them")
    yield Rule(
        f"{here}.topicsDir",
        f"self == '' || self.split('/').all(element, !(element in {_list(['', '.', '..', RESERVED])}))",
        f"{here}.topicsDir has an element that is empty, . or .., or {RESERVED}, which is kept for ledgers: leave it "
        "out",
    )
    yield Rule(
        here,
        _either(
            "!has(self.endpoint)",
            "self.insecure",
            "!self.endpoint.startsWith('http://')",
            f"self.endpoint.matches({_HERE})",
        ),
        f"{here}.endpoint is not encrypted: use https://, or allow it by {here}.insecure: true",
    )
    for name in ("directoryDelimiter", "fileDelimiter"):
        yield Rule(
            f"{here}.{name}",
            "!self.contains('%')",
            f"{here}.{name} has a %, which is kept for characters that are escaped in keys: use another",
        )
    yield Rule(
        f"{here}.directoryDelimiter",
        f"!self.contains('{RESERVED}')",
        f"{here}.directoryDelimiter has {RESERVED}, which is kept for ledgers: use another",
    )
    yield Rule(
        f"{here}.fileDelimiter",
        "!self.matches('[0-9]')",
        f"{here}.fileDelimiter has a digit: it could not be told from the partition and the offset; use another",
    )
    yield Rule(
        here,
        "!self.fileDelimiter.contains(self.directoryDelimiter) "
        "&& !self.directoryDelimiter.contains(self.fileDelimiter)",
        f"{here}.fileDelimiter cannot be told from directoryDelimiter: neither may hold the other",
    )
    yield Rule(
        here,
        "self.directoryDelimiter == '/' || !self.topicsDir.startsWith(self.directoryDelimiter) "
        "&& !self.topicsDir.endsWith(self.directoryDelimiter)",
        f"{here}.topicsDir has directoryDelimiter first or last: leave it out",
    )


def _rest() -> Iterator[Rule]:
    errors, letters = "spec.errors", "self.errors.deadLetterTopic"
    yield Rule(
        errors,
        _either("!has(self.deadLetterTopic)", f"self.tolerance == '{Tolerance.ALL}'"),
        f"{errors}.deadLetterTopic would never be used: it needs {errors}.tolerance: All",
    )
    yield Rule(
        "spec",
        _either(f"!has({letters})", "!has(self.kafka.topics)", f"!({letters} in self.kafka.topics)"),
        f"{errors}.deadLetterTopic is one of spec.kafka.topics: the sink would read its own dead letters",
    )
    yield Rule(
        "spec.rounds",
        f"{_size('self.minBytes')}.compareTo({_size('self.maxBytes')}) <= 0",
        "spec.rounds.minBytes is above spec.rounds.maxBytes: lower it, or raise maxBytes",
    )
    yield Rule(
        "spec.executor.memory",
        f"{_size('self.min')}.compareTo({_size('self.max')}) <= 0",
        "spec.executor.memory.min is above spec.executor.memory.max: lower it, or raise max",
    )
    yield Rule(
        "spec.serviceAccount",
        _either("!has(self.name)", "!has(self.annotations)", "self.annotations.size() == 0"),
        "spec.serviceAccount.annotations has no effect with name: annotate that one, or leave name out",
    )
    yield Rule(
        "spec.sinkId",
        "!self.contains('..') && self != 'topics'",
        "spec.sinkId holds .. or is topics, which is taken beside the ledgers: choose another",
    )
    yield from _reset()


def _reset() -> Iterator[Rule]:
    here = "spec.offsets.reset"
    for name, kind in (("timestamp", ResetTo.TIMESTAMP), ("partitions", ResetTo.OFFSETS)):
        yield Rule(
            here,
            _either(f"self.to != '{kind}'", f"has(self.{name})"),
            f"{here}.{name} is missing: to: {kind} needs it",
        )
        yield Rule(
            here,
            _either(f"self.to == '{kind}'", f"!has(self.{name})"),
            f"{here}.{name} has no effect without to: {kind}: leave it out, or write to: {kind}",
        )


RULES: Final[tuple[Rule, ...]] = (
    *_object(),
    *_identity(),
    *_kafka(),
    *_partitioner(),
    *_fixed_paths(),
    *_values_with_fields(),
    *_rotation(),
    *_s3(),
    *_rest(),
    *_spark(),
)
"""Every rule but the bounds of sizes and durations, which the schema brings along."""
