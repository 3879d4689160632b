"""The CustomResourceDefinition of S3Sinks, generated from `sink_job.api` by `make crd` and compared by `make lint`.

The schema validates single fields, the CEL rules combinations of fields. The parser of the job (`parse_sink`) is the
reference: what it alone can check is reported by the operator in the condition InvalidSpec. These are:

- time zones, locales, the letters of `partitioner.pathFormat`, the Java regular expression `kafka.topicsPattern`;
- control characters and spaces around texts; a port above 65535; an endpoint with a path, credentials or no host;
- keys of Secrets that begin with `..`; values of Kafka and Spark properties; of pod templates all but the
  types of common fields;
- what the converter needs or ignores: `format.registry`, its URLs and the fields of its type, `format.schema`,
  `format.keyConverter`, `format.decimals`, `format.timestamps`, `format.envelope`, `schemaCompatibility`;
- sizes with a fraction that are not a whole number of bytes; durations above 100 years;
- resources of other sinks in the cluster, and everything that only Kafka and S3 know.

Settings that this version does not implement are not in the schema. The API server rejects an unsupported enum value
with the list of supported ones. An unsupported field is unknown to it: kubectl, which validates strictly by default,
is rejected with the name of the field; other clients get a warning and the field is pruned.
"""

from __future__ import annotations

from typing import Any, Final

import yaml

from s3sink_operator.crd.rules import RULES
from s3sink_operator.crd.schema import attach, structural
from s3sink_operator.names import CATEGORY, PLURAL, SHORT_NAME, SINGULAR
from s3sink_operator.status.status_model import S3SinkStatus
from sink_job.api.spec import GROUP, KIND, VERSION, Sink

Json = dict[str, Any]

FILE: Final = f"crds/{PLURAL}.{GROUP}.yaml"
"""Path of the generated file, relative to the root of the repository."""

STATUS: Final[Json] = structural(S3SinkStatus.model_json_schema(), path="status")
"""The schema of the status. Every section is closed: unknown fields are pruned."""

_HEAD: Final = "# Generated from sink_job.api by `make crd`; do not edit.\n"
_PROGRESS: Final = ".status.progress"
_READY: Final = '.status.conditions[?(@.type=="Ready")]'


def crd() -> Json:
    """The CustomResourceDefinition."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{PLURAL}.{GROUP}",
            # Helm keeps the CRD, and with it every sink, when the operator is uninstalled.
            "annotations": {"helm.sh/resource-policy": "keep"},
            "labels": {"app.kubernetes.io/name": SINGULAR},
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "conversion": {"strategy": "None"},
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": SINGULAR,
                "shortNames": [SHORT_NAME],
                "categories": [CATEGORY],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": _columns(),
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.executor.instances",
                            "statusReplicasPath": ".status.replicas",
                            "labelSelectorPath": ".status.selector",
                        },
                    },
                    "schema": {"openAPIV3Schema": schema()},
                }
            ],
        },
    }


def schema() -> Json:
    """The structural schema of a whole S3Sink, rules included."""
    made: Json = {
        "type": "object",
        "description": "Copies Kafka topics to S3 with exactly-once delivery.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"{GROUP}/{VERSION}."},
            "kind": {"type": "string", "description": f"{KIND}."},
            "metadata": {"type": "object"},
            "spec": structural(Sink.model_json_schema(), path="spec", model="Spec"),
            "status": STATUS,
        },
    }
    attach(made, RULES)
    return made


def _columns() -> list[Json]:
    rows = (
        ("Ready", "string", f"{_READY}.status", "Status of the condition Ready."),
        ("State", "string", ".status.progress.phase", "Phase of the sink."),
        ("Partitions", "integer", ".status.progress.partitions.assigned", "Number of assigned topic-partitions."),
        ("Lag", "integer", ".status.progress.lag.records", "Number of records that are not in a visible object."),
        ("Memory", "string", ".status.memory.current", "Memory of an executor."),
        ("Age", "date", ".metadata.creationTimestamp", "Time since the S3Sink was created."),
        ("Reason", "string", f"{_READY}.reason", "Reason of the condition Ready."),
        (
            "Updated",
            "date",
            ".status.progress.updateTime",
            "Time since the operator wrote the progress; 5m at most while it works and the sink runs.",
        ),
    )
    columns: list[Json] = [
        {"name": name, "type": kind, "jsonPath": path, "description": about} for name, kind, path, about in rows
    ]
    for column in columns[-2:]:
        column["priority"] = 1  # only with -o wide
    return columns


def text() -> str:
    """The content of `FILE`."""
    return _HEAD + yaml.dump(crd(), Dumper=_PlainDumper, sort_keys=False, width=1000, allow_unicode=True)


class _PlainDumper(yaml.SafeDumper):
    """YAML without anchors, with short lists and mappings in flow style."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _list(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.Node:
    in_a_line = all(isinstance(item, str) for item in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=in_a_line)


def _mapping(dumper: yaml.SafeDumper, items: Json) -> yaml.Node:
    in_a_line = "rule" not in items and not any(isinstance(item, dict | list) for item in items.values())
    return dumper.represent_mapping("tag:yaml.org,2002:map", items, flow_style=in_a_line)


_PlainDumper.add_representer(list, _list)
_PlainDumper.add_representer(dict, _mapping)
