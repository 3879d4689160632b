"""The uploads of open objects."""

from __future__ import annotations

from sink_job.api.sections.job_sections import KeySettings
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.open_uploads import open_uploads
from sink_job.ledger.state import OffsetChecksum, OpenObject, PartitionState
from sink_job.rotation.types import OpenObjectState, RotationState

TP = TopicPartition("log", 3)


def open_object(path: str, first: int, settings: int, upload: str | None) -> OpenObject:
    return OpenObject(
        OpenObjectState(path=path, first=first, last=first, count=1, size=1, opened_at=0),
        settings=settings,
        offsets=OffsetChecksum(1, 1),
        upload=upload,
    )


def test_each_upload_has_the_key_by_the_settings_of_its_object() -> None:
    objects = (open_object("a", 5, 1, "u1"), open_object("b", 6, 2, "u2"), open_object("c", 7, 3, None))
    partitions = {TP: PartitionState(RotationState(next=8, committable=5), rotation_start=0, open=objects)}
    settings = {
        1: ObjectSettings().model_dump_json(),
        2: ObjectSettings(s3=KeySettings(topics_dir="lake")).model_dump_json(),
    }
    assert open_uploads(partitions, settings) == [
        ("topics/log/a/log+3+0000000005.json", "u1"),
        ("lake/log/b/log+3+0000000006.json", "u2"),
    ]


def test_partitions_without_open_objects_have_no_uploads() -> None:
    assert open_uploads({TP: PartitionState(RotationState.start(8), rotation_start=8)}, {}) == []
