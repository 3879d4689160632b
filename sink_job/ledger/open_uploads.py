"""The uploads of open objects."""

from __future__ import annotations

from collections.abc import Mapping

from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.state import PartitionState
from sink_job.partitioning.object_keys import object_key


def open_uploads(
    partitions: Mapping[TopicPartition, PartitionState], settings: Mapping[int, str]
) -> list[tuple[str, str]]:
    """Key and upload id of each open object with an upload, in the order of `partitions`.

    `settings` are the settings of the open objects (JSON) by the number of their claim, as in `LedgerState.settings`.
    """
    started = [(tp, o, o.upload) for tp, p in partitions.items() for o in p.open if o.upload]
    numbers = {o.settings for _, o, _ in started}
    settings_of_claims = {number: ObjectSettings.model_validate_json(settings[number]) for number in numbers}
    return [
        (object_key(settings_of_claims[o.settings], tp.topic, o.path, tp.partition, o.first), upload)
        for tp, o, upload in started
    ]
