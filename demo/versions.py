"""The objects of a topic whose records have two versions of a schema by turns."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
from rich.table import Table

from demo.console import Show
from demo.servers import Servers
from devtools import bucket_listing
from devtools.topics import Topics

_ID = slice(1, 5)
"""Where a value has the id of its schema: behind the magic byte."""


@dataclass(frozen=True)
class Stored:
    """An object: the folder and the topic-partition of its key, and the number of its lines by version."""

    folder: str
    partition: str
    lines: Mapping[int, int]


@dataclass(frozen=True)
class Produced:
    """The records of a topic: their number by version, and how often the version changes within the partitions."""

    records: Mapping[int, int]
    changes: int


def check_versions(show: Show, servers: Servers, topics: Topics, schema_ids: Sequence[int], new_field: str) -> bool:
    """Shows the objects of both versions. Returns whether each object has one version, each partition has at most one
    object of a version in a folder, and the lines of each version are as many as the records."""
    show.step("One object for each version of the schema")
    with show.spinner("counting the versions in Kafka"):
        produced = _produced(topics, servers.topic, schema_ids)
    objects = _stored(servers, new_field)
    show.console.print(_as_table(objects))
    good = one_for_each_version(objects) and _lines(objects) == produced.records
    show.say(f"in the topic the version changes {produced.changes:,} times within the partitions")
    show.say("with schemaCompatibility None each change closes an object")
    result = "[green]one for each path, partition and version[/green]" if good else "[red]NOT one for each[/red]"
    show.say(f"with Separate: {len(objects)} objects, {result}")
    return good


def one_for_each_version(objects: Sequence[Stored]) -> bool:
    """Whether each object has one version, and each partition has at most one object of a version in a folder."""
    places = Counter((each.folder, each.partition, *each.lines) for each in objects)
    return all(len(each.lines) == 1 for each in objects) and set(places.values()) == {1}


def _produced(topics: Topics, topic: str, schema_ids: Sequence[int]) -> Produced:
    versions = {schema_id: version for version, schema_id in enumerate(schema_ids, 1)}
    by_partition: dict[int, list[int]] = defaultdict(list)
    for message in topics.read(topic):
        schema_id = int.from_bytes((message.value() or b"")[_ID], "big")
        by_partition[message.partition() or 0].append(versions[schema_id])
    changes = sum(a != b for found in by_partition.values() for a, b in itertools.pairwise(found))
    return Produced(Counter(itertools.chain.from_iterable(by_partition.values())), changes)


def _stored(servers: Servers, new_field: str) -> list[Stored]:
    """The objects of the bucket. A line is of version 2 if it has the new field, which may be null."""
    client = servers.s3.client()
    decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode_lines
    found = []
    for key in bucket_listing.objects(client, servers.bucket):
        folder, _, name = key.rpartition("/")
        rows = decode(bucket_listing.body(client, servers.bucket, key))
        found.append(Stored(folder, name.split("+")[1], Counter(1 + (new_field in row) for row in rows)))
    return found


def _lines(objects: Sequence[Stored]) -> Counter[int]:
    return sum((Counter(each.lines) for each in objects), Counter())


def _as_table(objects: Sequence[Stored]) -> Table:
    """Objects and lines of each version, by folder."""
    table = Table("path", "objects: version 1", "version 2", "lines: version 1", "version 2", box=None, padding=(0, 2))
    for column in table.columns[1:]:
        column.justify = "right"
    for folder, group in itertools.groupby(objects, key=lambda each: each.folder):
        here = list(group)
        count = Counter(version for each in here for version in each.lines)
        lines = _lines(here)
        table.add_row(folder, *(str(count[version]) for version in (1, 2)), *(f"{lines[v]:,}" for v in (1, 2)))
    return table
