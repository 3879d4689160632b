"""The CustomResourceDefinition of S3Sinks, made from `sink_job.api`: `make crd` writes it, `make lint` compares.

The schema says what single fields may hold, the rules what fields mean together. The job's parser (`parse_sink`) stays
the final word: what it alone can tell is refused by the operator, in the condition InvalidSpec. These are:

- time zones, locales, the letters of `partitioner.pathFormat`, `kafka.topicsPattern` as a regular expression of Java;
- control characters and blanks around texts; a port above 65535; an endpoint with a path, credentials or no host;
- keys of secrets that begin with `..`; what a property of Kafka or Spark is set to; what a pod template holds;
- sizes with a fraction that are not a whole number of bytes; durations of more than 100 years;
- settings that this version of the job cannot do yet (`sink_job.api.unsupported`);
- what other sinks of the cluster claim, and everything that only Kafka and S3 know.
"""

from __future__ import annotations

from typing import Any, Final

import yaml

from s3sink_operator.crd.rules import RULES
from s3sink_operator.crd.schema import attach, structural
from s3sink_operator.crd.status import STATUS
from s3sink_operator.names import CATEGORY, PLURAL, SHORT_NAME, SINGULAR
from sink_job.api.spec import GROUP, KIND, VERSION, Sink

Json = dict[str, Any]

FILE: Final = f"crds/{PLURAL}.{GROUP}.yaml"
"""Where the text is kept, from the root of the project."""

_HEAD: Final = "# Made from sink_job.api by `make crd`; do not edit.\n"
_READY: Final = '.status.conditions[?(@.type=="Ready")]'


def crd() -> Json:
    """The CustomResourceDefinition."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{PLURAL}.{GROUP}",
            # Helm leaves it, and with it every sink, when the operator is uninstalled.
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
        "description": "Copies Kafka topics into S3 objects, exactly once.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"{GROUP}/{VERSION}."},
            "kind": {"type": "string", "description": f"{KIND}."},
            "metadata": {"type": "object"},
            "spec": structural(Sink.model_json_schema(), "Spec"),
            "status": STATUS,
        },
    }
    attach(made, RULES)
    return made


def _columns() -> list[Json]:
    rows = (
        ("Ready", "string", f"{_READY}.status", "Whether the sink runs as the spec says."),
        ("State", "string", ".status.connector.phase", "What the sink does."),
        ("Partitions", "integer", ".status.connector.partitions.assigned", "Topic-partitions that it reads."),
        ("Lag", "integer", ".status.connector.lag.records", "Records that are not in a visible object."),
        ("Memory", "string", ".status.memory.current", "What each executor has."),
        ("Age", "date", ".metadata.creationTimestamp", "Time since the S3Sink was made."),
        ("Reason", "string", f"{_READY}.reason", "Why it is ready, or is not."),
    )
    columns: list[Json] = [
        {"name": name, "type": kind, "jsonPath": path, "description": about} for name, kind, path, about in rows
    ]
    columns[-1]["priority"] = 1  # only with -o wide
    return columns


def text() -> str:
    """The CustomResourceDefinition as it is kept in `FILE`."""
    return _HEAD + yaml.dump(crd(), Dumper=_PlainDumper, sort_keys=False, width=1000, allow_unicode=True)


class _PlainDumper(yaml.SafeDumper):
    """YAML without references to what came before, and with what is short, a list of words or a field, in one line."""

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
