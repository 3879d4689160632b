"""The conversion of one connector: a pure function of its configuration and the settings of its worker."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from sink_job.api.enums import OnNullValue, OutputFormat
from sink_job.api.field_errors import in_a_line
from sink_job.api.field_types import check_dns_label, check_tombstone_path
from sink_job.migrate.consumer import convert_client, convert_group, convert_topics
from sink_job.migrate.converters import PREFIX, convert_converter
from sink_job.migrate.dead_letters import convert_dead_letters
from sink_job.migrate.draft import BY_HAND, Draft
from sink_job.migrate.findings import Configuration, Conversion, KeyFinding, Severity
from sink_job.migrate.format_settings import convert_format, output_format
from sink_job.migrate.inputs.other_sinks import other_class
from sink_job.migrate.manifest import commented, rendered
from sink_job.migrate.paths import convert_paths, convert_timezone, partitioner_type
from sink_job.migrate.rotation_settings import convert_rotation, has_schedule
from sink_job.migrate.secret_plan import SecretPlan
from sink_job.migrate.store import convert_store
from sink_job.migrate.table import Treatment, key_table
from sink_job.migrate.topic_router import convert_router
from sink_job.migrate.transforms import convert_transforms
from sink_job.migrate.values import parse_boolean, parse_choice

_SINK_NAME: Final = 40
"""Maximum length of the name of a sink: the operator adds suffixes to it."""


def convert(
    configuration: Configuration,
    worker: Mapping[str, str] | None = None,
    *,
    name: str | None = None,
    group: str | None = None,
) -> Conversion:
    """The S3Sink of a connector. `worker`: the properties of its worker. `name` and `group` replace the name of the
    sink and the consumer group."""
    connector = configuration.name or name or BY_HAND
    sink = sink_name(name or connector)
    draft = Draft(configuration.settings, {**configuration.worker, **(worker or {})})
    plan = SecretPlan(sink, _namespace(configuration))
    if _is_convertible(draft):
        _fields(draft, plan, configuration, connector, group)
        _other_keys(draft)
    if any(each.severity is Severity.IMPOSSIBLE for each in draft.findings):
        return Conversion(connector, sink, (), tuple(_reasons(draft.findings)))
    _names(draft, configuration, connector, sink, is_given=name is not None)
    metadata = {"name": sink} | ({"namespace": namespace} if (namespace := _namespace(configuration)) else {})
    lines = [
        *_head(connector, configuration, draft.findings, plan),
        *rendered(metadata, draft.fields),
    ]
    return Conversion(connector, sink, tuple(lines), tuple(draft.findings))


def sink_name(connector: str) -> str:
    """The Kubernetes name for a connector: lower case, `-` for other characters."""
    name = re.sub(r"[^a-z0-9]+", "-", connector.lower()).strip("-")[:_SINK_NAME].strip("-")
    return name or "s3sink"


def _namespace(configuration: Configuration) -> str | None:
    try:
        check_dns_label(configuration.namespace or "")
    except ValueError:
        return None
    return configuration.namespace


def _is_convertible(draft: Draft) -> bool:
    """Whether the class is that of the S3 sink."""
    key = "connector.class"
    name = draft.text(key)
    if not name:
        draft.impossible(key, "is missing: this is not the configuration of a connector")
    elif (sentence := other_class(name)) is not None:
        draft.impossible(key, sentence)
    else:
        return True
    return False


def _fields(draft: Draft, plan: SecretPlan, configuration: Configuration, connector: str, group: str | None) -> None:
    convert_topics(draft)
    convert_group(draft, connector, group, configuration.managed)
    convert_client(draft, plan)
    output = output_format(draft)
    converter = convert_converter(draft, plan, output)
    convert_format(draft, output, converter)
    convert_transforms(draft, converter, output)
    kind = partitioner_type(draft)
    convert_paths(draft, kind, converter)
    convert_rotation(draft, kind)
    used_by = "the partitioner" if kind.uses_time else "the schedule" if has_schedule(draft) else None
    convert_timezone(draft, used_by=used_by)
    convert_store(draft, plan)
    convert_router(draft)
    _errors(draft, output)
    _keys_and_headers(draft)
    if configuration.state != "Running":
        draft.put("state", configuration.state, f"the connector is {configuration.state.lower()}")
        draft.to_do(f"The sink has state: {configuration.state}, as the connector", "remove the line to start it")


def _errors(draft: Draft, output: str) -> None:
    tolerance = draft.parsed("errors.tolerance", lambda text: parse_choice(text, {"none": "None", "all": "All"}))
    if tolerance is not None:
        draft.put("errors.tolerance", tolerance, "errors.tolerance")
    key = "behavior.on.null.values"
    choices = {"fail": "Fail", "ignore": "Ignore", "write": "Write"}
    nulls = draft.parsed(key, lambda text: parse_choice(text, choices))
    if nulls == OnNullValue.WRITE:
        nulls = _written_nulls(draft, key, output)
    if nulls is not None:
        draft.put("errors.onNullValue", nulls, key)
    convert_dead_letters(draft, tolerance, nulls)


def _written_nulls(draft: Draft, key: str, output: str) -> str:
    """The policy in place of `write`, of which the connector writes the keys alone, into objects of their own."""
    if output == OutputFormat.BYTES:
        effect = "the output Bytes has no envelope to write tombstones with; Fail stops the sink at the first one"
        draft.different(key, effect, "choose Fail or Ignore for errors.onNullValue, or another output")
        return "Fail"
    effect = (
        "a tombstone is a record with format.envelope, in an object of the output and not one of keys alone, and all "
        "records have the envelope, with the bytes of their keys"
    )
    draft.different(key, effect, "readers find tombstones by the field valueIsNull, and values in the field value")
    draft.put("format.envelope", True, key)
    given = draft.parsed(_TOMBSTONES, _tombstone_path) if draft.text(_TOMBSTONES) else None
    draft.put("errors.tombstonePath", given or TOMBSTONE, _TOMBSTONES if given else f"{_TOMBSTONES}: the default")
    delimiter = draft.fields.get("s3.directoryDelimiter")
    text = str(delimiter.value) if delimiter is not None else "/"
    if (given or TOMBSTONE).startswith(text) or (given or TOMBSTONE).endswith(text):
        draft.impossible(_TOMBSTONES, "begins or ends with directory.delim", "use another path")
    return "Write"


def _tombstone_path(text: str) -> str:
    check_tombstone_path(text)
    return text


_TOMBSTONES: Final = "tombstone.encoded.partition"
TOMBSTONE: Final = "tombstone"
"""The connector's default of `tombstone.encoded.partition`."""


def _keys_and_headers(draft: Draft) -> None:
    """`store.kafka.keys` and `store.kafka.headers` with their formats."""
    for key in ("store.kafka.keys", "store.kafka.headers"):
        if draft.parsed(key, parse_boolean):
            what = "keys" if key.endswith("keys") else "headers"
            effect = f"no object of its own is written for {what}"
            draft.different(key, effect, "format.envelope: true writes both beside the value, in the same object")


def _other_keys(draft: Draft) -> None:
    """Reports each key that no field was made of."""
    for key, value in draft.settings.items():
        if draft.is_handled(key) or key.startswith(PREFIX):
            continue
        row = key_table().row(key)
        if key.startswith(("_", "//")):
            draft.left_out(key, "a comment")
        elif row is None:
            near = key_table().nearest(key)
            action = f"did you mean {near}?" if near else "check what the connector does with it"
            draft.different(key, _UNKNOWN, action)
        elif row.treatment is Treatment.DIFFERENT and value.strip().lower() not in ("", row.default.lower()):
            draft.different(key, row.sentence)
        else:
            draft.left_out(key, "the default" if row.treatment is Treatment.DIFFERENT else row.sentence)


_UNKNOWN: Final = "this key is not known"


def _reasons(findings: Iterable[KeyFinding]) -> Iterator[KeyFinding]:
    """The reasons not to convert, and the keys that may be misspelled: one of them may be the reason."""
    return (each for each in findings if each.severity is Severity.IMPOSSIBLE or each.effect == _UNKNOWN)


def _names(draft: Draft, configuration: Configuration, connector: str, sink: str, *, is_given: bool) -> None:
    if sink != connector and not is_given:
        draft.to_do(f"The sink is named {sink}: Kubernetes does not allow {in_a_line(connector)}", "")
    if configuration.namespace and _namespace(configuration) is None:
        draft.to_do("The namespace of the input is not a Kubernetes name; it is left out", "")


def _of_severity(findings: Iterable[KeyFinding], severity: Severity) -> Iterator[KeyFinding]:
    return (each for each in findings if each.severity is severity)


FIRST_START: Final = (
    "Stop the connector; s3sink run MANIFEST --from-connector --dry-run then prints where the sink starts, and what "
    "prevents it"
)
"""The last step before the first start."""


def _head(
    connector: str, configuration: Configuration, findings: Iterable[KeyFinding], plan: SecretPlan
) -> Iterator[str]:
    """The comment above the manifest."""
    yield from commented(
        f"From the connector {in_a_line(connector)}, by s3sink convert. docs/migrating.md describes the steps."
    )
    for remark in configuration.remarks:
        yield from commented(remark)
    sections: tuple[tuple[str, Callable[[], Iterable[str]]], ...] = (
        ("Different here:", lambda: map(str, _of_severity(findings, Severity.DIFFERENT))),
        (
            "Before the first start:",
            lambda: [*map(_step, _of_severity(findings, Severity.TO_DO)), *plan.steps(), FIRST_START],
        ),
        ("Left out, without effect on objects:", lambda: map(str, _of_severity(findings, Severity.LEFT_OUT))),
    )
    for heading, sentences in sections:
        lines = [line for sentence in sentences() for line in commented(sentence)]
        if lines:
            yield "#"
            yield f"# {heading}"
            yield from (f"#   {line.removeprefix('# ')}" for line in lines)


def _step(finding: KeyFinding) -> str:
    action = f": {finding.action}" if finding.action else ""
    return f"{finding.setting}{action}"
