"""The place of a ledger: below topicsDir in the objects' bucket, or where `spec.s3.ledger` says. It is set once, by the
first claim.

The ownership files are in the objects' bucket in both cases. They name a ledger in another place, so a driver with
another place reads of the first one in them before it claims anything, and two sinks with ledgers in different places
cannot write the same topic (docs/adr/0055).
"""

from __future__ import annotations

from collections.abc import Mapping

from sink_job.api.errors import ConfigurationError
from sink_job.api.field_types import RESERVED
from sink_job.api.spec import ledger_folder
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.generations import ledger_of
from sink_job.s3 import S3Client

_ANOTHER_PLACE = (
    "Or publish the open objects with the old value (s3sink run --publish-open), then start once with the new one and "
    "--start-new-ledger --take-over: a new ledger starts at the group's offsets, and s3sink verify does not check the "
    "earlier objects."
)


def ledger_root(s3: S3Client, topics_dir: str, sink_id: str) -> str:
    """The prefix of a sink's ledger, with a trailing `/`."""
    place = s3.settings.ledger
    return f"{'' if place is None else place.front}{ledger_folder(topics_dir, sink_id)}/"


def home_of(s3: S3Client, root: str) -> str:
    """The prefix in the objects' bucket of what belongs to the ledger at `root`: without `spec.s3.ledger` the same."""
    place = s3.settings.ledger
    return root if place is None else root.removeprefix(place.front)


def owner_file(s3: S3Client, root: str) -> str:
    """The key of the ownership file of the ledger at `root`, in the objects' bucket."""
    return f"{home_of(s3, root)}owner.json"


def recorded(s3: S3Client, root: str) -> str:
    """What ownership files say of the ledger at `root`: its URL, or nothing if it is below topicsDir."""
    return "" if s3.settings.ledger is None else s3.url_of(root)


def other_ledger(s3: S3Client, what: str, owner: str, ledger: str, own: str) -> ConfigurationError:
    """The error for a ledger with the name of this sink's, which could be neither fenced nor continued. `what` belongs
    to `ledger` of `owner`, while this sink has `own`, both as in ownership files."""
    if _is_url(ledger) or own:
        return ConfigurationError(
            f"{what} belongs to {_shown(s3, ledger)} of {owner}, and this sink has {_shown(s3, own)}. The place of a "
            "ledger is set once, and nothing was written. Restore the previous value of spec.s3.ledger. "
            f"{_ANOTHER_PLACE}"
        )
    shown = f"the ledger {s3.url}/{ledger}" if ledger else "a ledger in this topicsDir"
    return ConfigurationError(
        f"{what} belongs to {shown} of {owner}, and this sink has another ledger. Nothing was written. "
        "Use the topicsDir of that ledger, which continues it, or another topicsDir or sinkId. If that ledger is given "
        "up and no driver of it runs, start this sink once with s3sink run --take-over."
    )


def other_objects(what: str, owner: str, home: str, own: str) -> ConfigurationError:
    """The error for a ledger with this sink's URL that has the objects of another sink. `home`, `own`: the URLs that
    both ledgers would have without `spec.s3.ledger`; an empty `home`: the other sink does not set the field."""
    objects = f"objects below {_parent(_parent(home))}" if home else "objects in that bucket (no spec.s3.ledger)"
    return ConfigurationError(
        f"{what} belongs to {owner} with {objects}, and the objects of this sink are below {_parent(_parent(own))}. "
        "Nothing was written. Use another sinkId, or another spec.s3.ledger.prefix before the first start of the sink."
    )


def _is_url(ledger: str) -> bool:
    return ledger.startswith("s3://")


def _shown(s3: S3Client, ledger: str) -> str:
    if not ledger:
        return f"a ledger below topicsDir in {s3.url} (no spec.s3.ledger)"
    return f"the ledger {ledger if _is_url(ledger) else f'{s3.url}/{ledger}'}"


def check_no_other_ledger(
    url: str, group: str, metadata: Mapping[TopicPartition, str], home: str | None = None
) -> None:
    """For a missing ledger at `url`: raises ConfigurationError when the metadata of the group's offsets names a ledger
    in another bucket, topicsDir or place. `home`: the URL that it would have without `spec.s3.ledger`.

    A new ledger would start at these offsets without the open objects of the other ledger. For another sinkId in the
    same topicsDir, the topics' ownership decides (`claim_topics`).
    """
    for tp, text in sorted(metadata.items()):
        other = ledger_of(text)
        if other is None or _parent(other) == _parent(url):
            continue
        edits, way_out = _edits(other, url, home or url)
        raise ConfigurationError(
            f"there is no ledger at {url}, and the offsets of consumer group {group} were committed with the ledger "
            f"{other} (metadata of {tp}: {text}): {', '.join(edits)}. A new ledger would start at these offsets: it "
            "would copy records after these offsets that are already in closed objects again, and the open objects of "
            f"the other ledger would never be removed. Nothing was written. Restore the old value. {way_out} "
            "Or choose another sinkId and kafka.groupId: such a sink starts at kafka.startingOffsets."
        )


def _edits(other: str, url: str, home: str) -> tuple[list[str], str]:
    """What was changed between the ledgers `other` and `url`, and the way out."""
    suffix = _parent(home.removeprefix("s3:/"))  # with the / before the bucket
    was_elsewhere = _parent(other).endswith(suffix) and _parent(other) != _parent(home)
    if was_elsewhere or (url != home and _parent(other) == _parent(home)):
        places = ["not set" if _parent(each) == _parent(home) else _place(each, suffix) for each in (other, url)]
        return [f"spec.s3.ledger was {places[0]} and is {places[1]}"], _ANOTHER_PLACE
    front = url.removesuffix(home.removeprefix("s3://"))  # the URL of what the keys of this place begin with
    if url != home:
        if not other.startswith(front):
            return ["spec.s3.bucket, spec.s3.topicsDir or spec.s3.ledger was changed"], _ANOTHER_PLACE
        other, url = f"s3://{other.removeprefix(front)}", home
    old, new = _fields(other), _fields(url)
    return (
        [f"{field} was {old[field]} and is {new[field]}" for field in old if old[field] != new[field]],
        "Or publish the open objects with the old value (s3sink run --publish-open), then start once with "
        "--start-new-ledger, which starts at the group's offsets.",
    )


def _place(ledger: str, suffix: str) -> str:
    """The value of spec.s3.ledger for the ledger with this URL."""
    bucket, _, prefix = _parent(ledger).removesuffix(suffix).removeprefix("s3://").partition("/")
    return f"bucket {bucket} with prefix {prefix}" if prefix else f"bucket {bucket}"


def deleted_ledger_warning(url: str, group: str, metadata: Mapping[TopicPartition, str]) -> str | None:
    """For a missing ledger at `url`: a warning if the metadata of the group's offsets names it, so it was deleted.

    The start is correct (P5): the objects are before these offsets, or the start ends with LedgerLost.
    """
    tp = next((tp for tp, text in sorted(metadata.items()) if ledger_of(text) == url), None)
    if tp is None:
        return None
    return (
        f"there is no ledger at {url}, although the offsets of consumer group {group} were committed with it (such as "
        f"that of {tp}): the ledger was deleted. A new ledger starts at these offsets. It has no generations, inferred "
        "schemas and field ids of the deleted one, `s3sink verify` does not check the earlier objects, and uploads of "
        "objects that were open stay until a lifecycle rule removes them. To keep them, stop the sink and restore the "
        "objects below that prefix (bucket versioning)"
    )


def _parent(ledger: str) -> str:
    return ledger.rstrip("/").rpartition("/")[0]


def _fields(ledger: str) -> dict[str, str]:
    """The fields of the spec that form the URL of a ledger."""
    bucket, _, root = ledger.removeprefix("s3://").partition("/")
    topics_dir, _, sink_id = f"/{root}".rpartition(f"/{RESERVED}/")
    return {
        "spec.s3.bucket": bucket,
        "spec.s3.topicsDir": topics_dir.removeprefix("/") or "empty",
        "spec.sinkId": sink_id.rstrip("/"),
    }
