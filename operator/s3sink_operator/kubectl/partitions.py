"""All topic-partitions of a sink: from the report of its driver, or the committed offsets in the status.

The report is read through the API server's pod proxy, which requires `get` on `pods/proxy`, with the token of the pod.
The status has the committed offset of each topic-partition for every user who may read the sink, also while no driver
runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from pydantic import ValidationError

from s3sink_operator import names
from s3sink_operator.kubectl.client import Kubectl, KubectlError
from s3sink_operator.objects import report_port
from s3sink_operator.status.progress_model import PartitionProgress, SinkProgress
from s3sink_operator.status.reported_progress import partition_progress
from s3sink_operator.types import Json, annotation, to_timestamp
from sink_job.api.report import Report


@dataclass(frozen=True, kw_only=True)
class PartitionList:
    """Topic-partitions by name and number. `source`: Driver or Status; `time`: of the observation, in ms since the
    epoch; `note`: what is missing and why, or empty."""

    partitions: Sequence[PartitionProgress]
    source: str
    time: int | None
    note: str = ""

    def as_data(self) -> Json:
        """As JSON."""
        return {
            "source": self.source,
            "time": None if self.time is None else to_timestamp(self.time),
            "items": [each.document() for each in self.partitions],
        }


def all_partitions(kubectl: Kubectl, sink: Json, progress: SinkProgress) -> PartitionList:
    """All topic-partitions of the driver's report, or those of the status if the report cannot be read."""
    meta = sink["metadata"]
    try:
        pod = kubectl.find("pods", names.driver_pod_name(meta["name"]))
        if pod is None:
            return from_status(progress, "no driver runs")
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{pod['metadata']['name']}:{report_port(pod)}/proxy/report"
        if (token := annotation(pod, names.REPORT_TOKEN_ANNOTATION)) is not None:
            path += f"?{urlencode({'token': token})}"
        report = Report.model_validate_json(kubectl.raw(path))
    except KubectlError as error:
        return from_status(progress, f"the driver's report cannot be read: {error}")
    except ValidationError:
        return from_status(progress, "the driver's report is invalid")
    if (report.namespace, report.name) != (meta["namespace"], meta["name"]):
        return from_status(progress, "the report at the driver's address is of another sink")
    if not report.partitions:
        return from_status(progress, f"the driver is {report.state.value}")
    return from_report(report)


def from_report(report: Report) -> PartitionList:
    """The topic-partitions of a report."""
    found = [partition_progress(each) for each in report.partitions]
    return PartitionList(partitions=_ordered(found), source="Driver", time=report.log_ends_at or report.now)


def from_status(progress: SinkProgress, reason: str) -> PartitionList:
    """The topic-partitions of the status. `reason`: why the report is not used."""
    found = {(each.topic, each.partition): each for each in _committed(progress)}
    for each in progress.most_lagging or ():
        found[each.topic, each.partition] = each
    at = "" if progress.update_time is None else f" of {to_timestamp(progress.update_time)}"
    note = f"{reason}; these are the committed offsets in the status{at}"
    missing = [each.topic for each in progress.topics or () if each.committed is None]
    if missing:
        note += f", without {len(missing)} topics that do not fit into it"
    return PartitionList(partitions=_ordered(found.values()), source="Status", time=progress.update_time, note=note)


def _committed(progress: SinkProgress) -> Iterator[PartitionProgress]:
    for topic in progress.topics or ():
        for partition, offset in enumerate(topic.committed or ()):
            if offset >= 0:
                yield PartitionProgress(topic=topic.topic, partition=partition, committed=offset)


def _ordered(partitions: Iterable[PartitionProgress]) -> list[PartitionProgress]:
    return sorted(partitions, key=lambda each: (each.topic, each.partition))
