"""The ConfigMap with the schema of values (`spec.format.schema`) in driver and operation pods.

Executors do not mount it: they read the copy in the ledger. A pod reads it once, at its start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from s3sink_operator.objects.spark_properties import CONFIG_DIR
from s3sink_operator.types import Json
from sink_job.api.spec import Sink

CONFIG_MAPS_DIR: Final = f"{CONFIG_DIR}/config-maps"
_VOLUME: Final = "schema"


def environment(sink: Sink) -> list[Json]:
    """The variable with the directory of ConfigMaps, if there is one."""
    return [{"name": "S3SINK_CONFIG_MAPS_DIR", "value": CONFIG_MAPS_DIR} for _ in _config_maps(sink)]


def volumes(sink: Sink) -> list[Json]:
    return [{"name": _VOLUME, "configMap": {"name": name}} for name in _config_maps(sink)]


def mounts(sink: Sink) -> list[Json]:
    found = _config_maps(sink)
    return [{"name": _VOLUME, "mountPath": f"{CONFIG_MAPS_DIR}/{name}", "readOnly": True} for name in found]


def _config_maps(sink: Sink) -> Sequence[str]:
    schema = sink.spec.format.bare_value_schema
    return [] if schema is None or schema.config_map is None else [schema.config_map]
