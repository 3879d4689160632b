"""The part of a plan that concerns the schema registry."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final

COMPATIBILITIES: Final = ("Backward", "None", "Forward", "Separate", "Full")
OUTPUTS: Final[tuple[Mapping[str, Any], ...]] = (
    {"output": "Parquet", "compression": {"codec": "Snappy"}, "parquet": {"rowGroup": "1Mi"}},
    {"output": "Json", "compression": {"codec": "Gzip"}},
    {"output": "Avro", "compression": {"codec": "Zstd"}, "avro": {"block": "2Ki"}},
    {"output": "Parquet", "compression": {"codec": "Zstd"}, "parquet": {"rowGroup": "1Mi"}},
    {"output": "Json"},
    {"output": "Avro", "compression": {"codec": "None"}, "avro": {"block": "2Ki"}},
)
CONVERTERS: Final = ("Avro", "Avro", "JsonSchema", "Protobuf")

FAULTS: Final[Mapping[str, int]] = {
    "registry-kill": 2,
    "registry-pause": 1,
    "registry-slow": 1,
    "registry-status": 1,
    "registry-denied": 1,
    "registry-late": 2,
    "registry-changed": 1,
}
"""The faults of scenarios with a registry, with the number of occurrences of each in 75 cycles."""

OUTAGE: Final = "registry-outage"
SHARE: Final = 0.1
"""Fraction of the scenarios with a registry among those without such a fault."""

_VERSIONS: Final = ((1,), (1, 2), (2, 3), (1, 2, 3), (3, 4))
"""The versions that producers use in the cycles of a scenario."""
_RUNS: Final[Mapping[str, tuple[int, ...]]] = {"None": (60, 200), "Separate": (1, 60), "Forward": (20, 100)}
"""Records of one version in a row; where a change closes objects, more of them."""


def is_of_registry(fault: str) -> bool:
    """Whether a fault needs a scenario with a registry."""
    return fault in FAULTS or fault == OUTAGE


def sections(rng: random.Random, count: int) -> dict[str, Any]:
    """The sections of the manifest with the registry number `count` of a plan. The URL is that of the run."""
    registry = {"url": ["http://127.0.0.1:8081"]}
    form = {"converter": rng.choice(CONVERTERS), "registry": registry, **OUTPUTS[count % len(OUTPUTS)]}
    return {"format": form, "schemaCompatibility": COMPATIBILITIES[count % len(COMPATIBILITIES)]}


def versions(rng: random.Random, index: int, compatibility: str) -> dict[str, Any]:
    """The fields of the burst of a cycle, the number `index` of its scenario, that concern versions."""
    return {"versions": _VERSIONS[index % len(_VERSIONS)], "run": rng.choice(_RUNS.get(compatibility, (5, 60)))}
