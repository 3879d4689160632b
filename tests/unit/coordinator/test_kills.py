"""A kill before each effect of a run on the store or the group: the next driver leaves the bytes of an undisturbed run,
for each output and compression.

A kill after an effect is one before the next: the process takes nothing with it. `tests/data/test_crash_points.py` has
lost replies and a real S3 server.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from devtools.simulation.containers import CODECS, SCHEMAS
from devtools.simulation.executors import without_threads
from devtools.simulation.run import tiny_sizes
from sink_job.api.errors import TransientError
from sink_job.ledger.schemas.object_schemas import ObjectSchemas
from sink_job.ledger.schemas.schema_table import LedgerSchemas
from sink_job.registry.client import open_schemas
from tests.support.memory_sink import MemorySinkFixture
from tests.support.sink_fixture import manifest
from tests.support.synthetic_log import FileConsumerGroup, SyntheticLog, sink_of_text

CASES = [
    *(("Json", codec) for codec in ("None", "Gzip", "Zstd")),
    *((output, codec) for output, codecs in CODECS.items() for codec in codecs),
]
EFFECTS = ("put", "delete", "create_upload", "upload_part", "complete", "tag", "abort")


class Killed(BaseException):
    """The end of a process."""


class Values(SyntheticLog):
    """Values of the schema of `devtools.simulation`. The first two fill no block; the third is larger than a part."""

    def value(self, partition: int, offset: int) -> bytes:
        pad = Random(offset).randbytes(500 if offset == 2 else 20).hex()
        return json.dumps({"at": "t", "kind": f"k{offset}", "pad": pad, "tags": ["a"] * (offset % 3)}).encode()


class HalfRejected(Values):
    """The same, but every second value is not JSON."""

    def value(self, partition: int, offset: int) -> bytes:
        return super().value(partition, offset)[offset % 2 :]


LOG = Values(records=4)
REJECTED = HalfRejected(records=8)
DEAD_LETTERS = {"tolerance": "All", "deadLetters": {"prefix": "rejected"}}


@pytest.fixture(autouse=True)
def small_sizes() -> Iterator[None]:
    with tiny_sizes(), without_threads(Random(1)):
        yield


class Sink:
    """Drivers of one sink, each with the memory of a new process. Objects have three records, rounds have two."""

    def __init__(
        self,
        folder: Path,
        patch: pytest.MonkeyPatch,
        output: str,
        codec: str,
        log: SyntheticLog = LOG,
        **more: Any,
    ) -> None:
        folder.mkdir()
        self.log = log
        self.memory = MemorySinkFixture(folder, patch)
        chosen: dict[str, Any] = {"output": output, "compression": {"codec": codec}}
        if output != "Json":
            schema = {"converter": "JsonSchema", "schema": {"text": SCHEMAS[0]}}
            chosen |= {
                **schema,
                **({"parquet": {"rowGroup": 150}} if output == "Parquet" else {"avro": {"block": 150}}),
            }
        given: dict[str, Any] = {
            "flush_size": 3,
            "max_records": 2,
            "part_size": 400,
            "spec": {"format": chosen},
            **more,
        }
        self._given = given
        self.edit()
        self.effects = 0

    def edit(self, **more: Any) -> None:
        """Changes the manifest."""
        self._given |= more
        self.memory.sink = sink_of_text(manifest("archive", "http://127.0.0.1:9", **self._given))

    def run(self, before: Callable[[int], None] = lambda effect: None) -> None:
        """Runs a driver until everything is published. `before` is called before each effect."""
        for schemas in (LedgerSchemas, ObjectSchemas):
            schemas._caches.clear()

        def fault(call: str, key: str) -> None:
            if call in EFFECTS:
                self.effects += 1
                before(self.effects)

        registry = open_schemas(self.memory.sink.spec.format, None, lambda seconds: False, lambda secrets: None)
        group = Group(self.log, self.memory.group, lambda: fault("put", "group"))
        with self.memory.faults(fault):
            self.memory.run(self.log, registry=registry, admin=group)

    def run_killed_before(self, effect: int) -> None:
        """Runs a driver and expects that it ends before its effect of this number; the first is 1."""

        def kill(number: int) -> None:
            if number == effect:
                raise Killed

        with pytest.raises(Killed):
            self.run(kill)

    def contents(self) -> dict[str, bytes]:
        return {key: each.body for key, each in self.memory.s3.objects.items() if "/_s3sink/" not in f"/{key}"}


class Group(FileConsumerGroup):
    """Calls `before` before each commit."""

    def __init__(self, log: SyntheticLog, path: Path, before: Callable[[], None]) -> None:
        super().__init__(log, path)
        self._before = before

    def alter_group_offsets(self, *given: object, **named: object) -> None:
        self._before()
        super().alter_group_offsets(*given, **named)  # type: ignore[arg-type]


@pytest.mark.parametrize(("output", "codec"), CASES, ids=[f"{one} {other}" for one, other in CASES])
def test_a_kill_before_any_effect_leaves_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, codec: str
) -> None:
    undisturbed = Sink(tmp_path / "undisturbed", monkeypatch, output, codec)
    undisturbed.run()
    assert undisturbed.effects > 20
    assert len(undisturbed.contents()) == 2
    for effect in range(1, undisturbed.effects + 1):
        sink = Sink(tmp_path / str(effect), monkeypatch, output, codec)
        sink.run_killed_before(effect)
        sink.run()
        assert sink.contents() == undisturbed.contents(), effect
        assert sink.memory.orphans() == []


@pytest.mark.parametrize("codec", ["None", "Gzip"])
def test_a_kill_before_any_effect_leaves_the_same_equal_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: str
) -> None:
    """Of a store that rejects an object whose parts have different sizes."""
    given: dict[str, Any] = {"part_size": 110, "equal_parts": True}
    undisturbed = Sink(tmp_path / "undisturbed", monkeypatch, "Json", codec, **given)
    undisturbed.memory.s3.equal_parts = True
    undisturbed.run()
    assert len(undisturbed.contents()) == 2
    for effect in range(1, undisturbed.effects + 1):
        sink = Sink(tmp_path / str(effect), monkeypatch, "Json", codec, **given)
        sink.memory.s3.equal_parts = True
        sink.run_killed_before(effect)
        sink.run()
        assert sink.contents() == undisturbed.contents(), f"killed before effect {effect}"
        assert sink.memory.orphans() == []


NAMES = {"topicInPath": False, "prefixes": [{"pattern": "l.*", "prefix": "a/b"}]}


@pytest.mark.parametrize(
    ("s3", "directory"),
    [({"topicInPath": False}, "topics"), (NAMES, "topics/a/b"), ({**NAMES, "topicsDir": ""}, "a/b")],
)
def test_a_kill_before_any_effect_leaves_the_same_keys_in_other_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, s3: dict[str, Any], directory: str
) -> None:
    location = json.loads(manifest("archive", "http://127.0.0.1:9", part_size=400))["spec"]["s3"]
    given: dict[str, Any] = {"spec": {"s3": {**location, **s3}}}
    undisturbed = Sink(tmp_path / "undisturbed", monkeypatch, "Json", "None", **given)
    undisturbed.run()
    assert sorted(undisturbed.contents()) == [f"{directory}/partition=0/log+0+{first:010}.json" for first in (0, 3)]
    for effect in range(1, undisturbed.effects + 1):
        sink = Sink(tmp_path / str(effect), monkeypatch, "Json", "None", **given)
        sink.run_killed_before(effect)
        sink.run()
        assert sink.contents() == undisturbed.contents(), f"killed before effect {effect}"
        assert sink.memory.orphans() == []


def test_a_kill_before_any_effect_leaves_tags_at_each_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    undisturbed = Sink(tmp_path / "undisturbed", monkeypatch, "Json", "None")
    undisturbed.memory.s3.has_offset_tags = True
    undisturbed.run()
    tags = undisturbed.memory.s3.tags
    assert tags.keys() == undisturbed.contents().keys()
    assert sorted(tags.values()) == [(0, 2, 3), (3, 3, 1)]
    for effect in range(1, undisturbed.effects + 1):
        sink = Sink(tmp_path / str(effect), monkeypatch, "Json", "None")
        sink.memory.s3.has_offset_tags = True
        sink.run_killed_before(effect)
        sink.run()
        assert sink.memory.s3.tags == tags, f"killed before effect {effect}"


def test_a_store_that_needs_equal_parts_gets_no_object_without_the_setting_and_all_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = Sink(tmp_path / "undisturbed", monkeypatch, "Json", "None", part_size=110)
    undisturbed.run()
    sink = Sink(tmp_path / "sink", monkeypatch, "Json", "None", part_size=110)
    sink.memory.s3.equal_parts = True
    with pytest.raises(TransientError, match="or the store rejects their parts: run s3sink check-store"):
        sink.run()
    assert sink.contents() == {}
    sink.edit(equal_parts=True)
    sink.run()
    assert sink.contents() == undisturbed.contents()


@pytest.mark.parametrize("output", ["Json", "Parquet"])
def test_a_kill_before_any_effect_leaves_the_same_dead_letters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    given: dict[str, Any] = {"log": REJECTED, "errors": DEAD_LETTERS}
    undisturbed = Sink(tmp_path / "undisturbed", monkeypatch, output, "None", **given)
    undisturbed.run()
    assert sum(key.startswith("rejected/") for key in undisturbed.contents()) > 1
    for effect in range(1, undisturbed.effects + 1):
        sink = Sink(tmp_path / str(effect), monkeypatch, output, "None", **given)
        sink.run_killed_before(effect)
        sink.run()
        assert sink.contents() == undisturbed.contents(), f"killed before effect {effect}"


@pytest.mark.parametrize("output", ["Json", "Parquet"])
def test_a_kill_before_any_effect_leaves_the_same_objects_beside_skipped_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    """Every second record is invalid and skipped, and one that is valid."""
    skip = [{"topic": "log", "partition": 0, "offset": offset} for offset in (1, 3, 4, 5, 7)]
    given: dict[str, Any] = {"log": REJECTED, "errors": {"skip": skip}, "flush_size": 2}
    undisturbed = Sink(tmp_path / "undisturbed", monkeypatch, output, "None", **given)
    undisturbed.run()
    assert len(undisturbed.contents()) == 2
    for effect in range(1, undisturbed.effects + 1):
        sink = Sink(tmp_path / str(effect), monkeypatch, output, "None", **given)
        sink.run_killed_before(effect)
        sink.run()
        assert sink.contents() == undisturbed.contents(), f"killed before effect {effect}"
        assert sink.memory.orphans() == []


TRANSFORMS: list[dict[str, Any]] = [
    {"type": "Filter", "when": {"field": "kind", "values": ["k1", "k4", "k5"]}},
    {"type": "Insert", "field": "at", "source": "Offset"},
    {"type": "Drop", "fields": ["tags"]},
]


class Enveloped(Values):
    """The same with a schema in each value. The second half has a further field."""

    def value(self, partition: int, offset: int) -> bytes:
        fields: list[dict[str, Any]] = [{"type": "string", "field": name} for name in ("at", "kind", "pad")]
        fields.append({"type": "struct", "field": "s", "fields": [{"type": "int32", "field": "n"}]})
        payload = {**json.loads(super().value(partition, offset)), "s": {"n": offset}}
        del payload["tags"]
        if offset >= 4:
            fields.append({"type": "boolean", "field": "more"})
            payload["more"] = True
        return json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": payload}).encode()


def transformed(transforms: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"log": Values(records=8), "flush_size": 2, "spec": {"format": {}, "transforms": transforms}, **more}


def test_a_kill_before_any_effect_leaves_the_same_objects_with_transforms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third round has filtered records alone."""
    given = transformed(TRANSFORMS)
    undisturbed = Sink(tmp_path / "undisturbed", monkeypatch, "Json", "None", **given)
    undisturbed.run()
    lines = [json.loads(line) for _, body in sorted(undisturbed.contents().items()) for line in body.splitlines()]
    assert [(each["at"], each["kind"], sorted(each)) for each in lines] == [
        (offset, f"k{offset}", ["at", "kind", "pad"]) for offset in (0, 2, 3, 6, 7)
    ]
    for effect in range(1, undisturbed.effects + 1):
        sink = Sink(tmp_path / str(effect), monkeypatch, "Json", "None", **given)
        sink.run_killed_before(effect)
        sink.run()
        assert sink.contents() == undisturbed.contents(), f"killed before effect {effect}"
        assert sink.memory.orphans() == []


def test_a_changed_list_of_transforms_closes_what_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object has the records of the list with which it was opened (P8), also after a kill at any effect."""
    others = [{"type": "Keep", "fields": ["kind"]}, {"type": "Rename", "renames": {"kind": "name"}}]
    given = transformed(TRANSFORMS, flush_size=3)
    undisturbed = Sink(tmp_path / "undisturbed", monkeypatch, "Json", "None", **given)
    undisturbed.run()
    with_both = 0
    for effect in range(1, undisturbed.effects + 1):
        sink = Sink(tmp_path / str(effect), monkeypatch, "Json", "None", **given)
        sink.run_killed_before(effect)
        sink.edit(spec={"format": {}, "transforms": others})
        sink.run()
        objects = [[json.loads(line) for line in body.splitlines()] for body in sink.contents().values()]
        assert all(len({tuple(sorted(line)) for line in each}) == 1 for each in objects), f"killed before {effect}"
        before = sorted(line["at"] for each in objects for line in each if "at" in line)
        after = sorted(int(line["name"][1:]) for each in objects for line in each if "name" in line)
        start = min(after, default=8)
        assert after == list(range(start, 8)), f"killed before effect {effect}"
        assert before == [offset for offset in (0, 2, 3, 6, 7) if offset < start], f"killed before effect {effect}"
        assert sink.memory.orphans() == []
        with_both += bool(before and after)
    assert with_both > 5


@pytest.mark.parametrize("output", ["Avro", "Parquet", "Json"])
def test_a_kill_before_any_effect_leaves_the_same_objects_with_transformed_schemas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    """A change of the records' schema closes an object, as one of the transformed schema."""
    transforms = [
        {"type": "Filter", "when": {"field": "kind", "values": ["k1", "k6"]}},
        {"type": "Flatten", "delimiter": "_"},
        {"type": "Cast", "casts": {"s_n": "Text"}},
        {"type": "Insert", "field": "topic", "source": "Topic"},
    ]
    sizes: dict[str, Any] = {"Avro": {"avro": {"block": 150}}, "Parquet": {"parquet": {"rowGroup": 150}}}.get(
        output, {}
    )
    spec = {"format": {"converter": "ConnectJson", "output": output, **sizes}, "transforms": transforms}
    given: dict[str, Any] = {"log": Enveloped(records=8), "flush_size": 4, "spec": spec}
    undisturbed = Sink(tmp_path / "undisturbed", monkeypatch, output, "None", **given)
    undisturbed.run()
    firsts = [int(key.rpartition("+")[2].partition(".")[0]) for key in sorted(undisturbed.contents())]
    assert firsts == [0, 4]
    if output == "Json":
        (first, _) = sorted(undisturbed.contents())
        line = json.loads(undisturbed.contents()[first].splitlines()[1])
        assert {name: line[name] for name in ("s_n", "topic", "kind")} == {"s_n": "2", "topic": "log", "kind": "k2"}
    for effect in range(1, undisturbed.effects + 1):
        sink = Sink(tmp_path / str(effect), monkeypatch, output, "None", **given)
        sink.run_killed_before(effect)
        sink.run()
        assert sink.contents() == undisturbed.contents(), f"killed before effect {effect}"
        assert sink.memory.orphans() == []
