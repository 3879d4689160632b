"""The fuzzer of converters: each converter for a short time from a seed, and what counts as a finding.

`S3SINK_SEED` is the seed (default: 1).
"""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from devtools.fuzz import checks
from devtools.fuzz.case import Case
from devtools.fuzz.checks import BrokenProperty, check
from devtools.fuzz.run import Limits, fuzz
from devtools.fuzz.targets import TARGETS, case_of
from sink_job.api.enums import ConverterType
from sink_job.converters.base import Converted

SEED = int(os.environ.get("S3SINK_SEED", "1"))
BROKEN = "tests.unit.devtools.broken_converter"
LIMITS = Limits(cpu_s=0, batches=100, batch_s=120, memory=8 * 1024**3)
"""More than half of the batches of a converter may have only values that it rejects: a hundred of them have one that it
accepts."""


@pytest.mark.parametrize("converter", list(TARGETS))
def test_no_input_breaks_a_converter(converter: str) -> None:
    print(f"repeat with S3SINK_SEED={SEED}")
    result = fuzz(converter, SEED, LIMITS)
    repeat = f"python -m devtools.fuzz --converter {converter} --seed {SEED} --batch"
    assert not [f"{repeat} {finding.batch}: {finding.kind}" for finding in result.findings]
    assert result.texts > 0


def test_a_batch_is_a_function_of_its_seed_and_number() -> None:
    for converter in TARGETS:
        assert case_of(converter, 5, 3) == case_of(converter, 5, 3) != case_of(converter, 5, 4)


def test_the_text_of_a_finding_repeats_its_batch() -> None:
    case = case_of("Avro", 5, 3)
    assert eval(repr(case), {"Case": Case}) == case


def test_every_converter_is_fuzzed() -> None:
    assert set(TARGETS) == set(ConverterType)


@pytest.mark.parametrize(
    ("fault", "kind", "batch_s"),
    [
        ("panic", "Panic in broken_converter.py", 120),
        ("memory", "MemoryError in broken_converter.py", 120),
        ("hang", "no progress within 2 s", 2),
    ],
)
def test_a_fault_is_a_finding_with_its_batch_and_place(fault: str, kind: str, batch_s: float) -> None:
    (found,) = fuzz("Bytes", 1, Limits(cpu_s=0, batch_s=batch_s), program=_broken(fault)).findings
    assert (found.batch, found.kind.partition(":")[0]) == (0, kind)
    assert "broken_converter.py" in found.text


def test_a_run_continues_with_the_next_batch_after_a_crash() -> None:
    result = fuzz("Bytes", 1, Limits(cpu_s=0, batches=3, batch_s=120), program=_broken("segfault"))
    assert [(found.batch, found.kind) for found in result.findings] == [(0, "exit by SIGSEGV")]
    assert result.batches > 1
    assert result.texts > 0


def _broken(fault: str) -> tuple[str, ...]:
    return sys.executable, "-u", "-m", BROKEN, fault


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"values": [b'{"a": ']}, "not a complete JSON text"),
        ({"values": [b'{"a":\n1}']}, "is not one line"),
        ({"values": [b'{"a": 2}']}, "differs from the value"),
        ({"rejected": [(0, "")]}, "has no reason"),
    ],
)
def test_a_wrong_result_breaks_a_property(
    changed: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = pa.array(changed.get("values", [b'{"a": 1}']), pa.binary())
    found = Converted(values, rejected=changed.get("rejected", []))
    monkeypatch.setattr(checks, "converter_of", lambda *_: SimpleNamespace(convert=lambda *_: found))
    with pytest.raises(BrokenProperty, match=message):
        check(Case("Json", (b'{"a": 1}',)))


def test_a_value_with_another_result_in_its_batch_breaks_a_property(monkeypatch: pytest.MonkeyPatch) -> None:
    def convert(values: pa.BinaryArray, _: object) -> Converted:
        return Converted(values, rejected=[(0, "it is in a batch")] if len(values) > 1 else [])

    monkeypatch.setattr(checks, "converter_of", lambda *_: SimpleNamespace(convert=convert))
    with pytest.raises(BrokenProperty, match="row 0: alone it gives"):
        check(Case("Json", (b"1", b"2")))


REGRESSIONS = [
    Case(
        "ConnectJson",
        (
            b'{"schema": {"type": "double", "name": "org.apache.kafka.connect.data.Timestamp"}, "payload": 1.5}',
            b'{"schema": {"type": "int32"}, "payload": 1}',
        ),
        timestamps="Iso",
    ),
]
"""Batches that once failed: the texts of findings."""


@pytest.mark.parametrize("case", REGRESSIONS)
def test_a_batch_that_once_failed_is_converted(case: Case) -> None:
    texts, rejected = check(case)
    assert texts + rejected == len(case.rows)
