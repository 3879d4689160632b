"""The Secrets of a manifest: references to existing ones, and commands that create the others. No value is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from sink_job.api.field_types import check_data_key, check_object_name
from sink_job.migrate.values import STRIMZI_SECRET


@dataclass(frozen=True, slots=True)
class SecretReference:
    """A key of a Kubernetes Secret."""

    secret: str
    key: str


class SecretPlan:
    """Collects the Secrets that one manifest needs."""

    def __init__(self, sink: str, namespace: str | None) -> None:
        self._sink: Final = sink
        self._namespace: Final = namespace
        self._new: dict[str, dict[str, str]] = {}
        self._foreign: dict[str, str] = {}

    def existing(self, value: str) -> SecretReference | None:
        """The key of a Secret that `value` refers to by Strimzi's provider; None if it is anything else."""
        found = STRIMZI_SECRET.fullmatch(value.strip())
        if found is None:
            return None
        namespace, name, key = found.groups()
        try:
            check_object_name(name)
            check_data_key(key)
        except ValueError:
            return None
        if namespace is not None and namespace != (self._namespace or namespace):
            self._foreign[name] = namespace
        return SecretReference(name, key)

    def create(self, purpose: str, contents: Mapping[str, str]) -> str:
        """The name of a Secret to create, `<sink>-<purpose>`. `contents`: what belongs into each of its keys."""
        name = f"{self._sink}-{purpose}"
        self._new.setdefault(name, {}).update(contents)
        return name

    def steps(self) -> Iterator[str]:
        """The commands that create the Secrets, each after the content of its files."""
        where = f" --namespace {self._namespace}" if self._namespace else ""
        for name, namespace in self._foreign.items():
            yield f"Copy the Secret {name} from the namespace {namespace}: pods read those of their own namespace only."
        for name, contents in self._new.items():
            for key, what in contents.items():
                yield f"Write into the file {key}: {what}"
            files = "".join(f" --from-file={key}" for key in contents)
            yield f"kubectl create secret generic {name}{where}{files}"
            yield f"Without a cluster: s3sink run MANIFEST --secret {name}=DIR, the directory of these files"
