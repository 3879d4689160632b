"""The identity of a sink in ownership files, as text: `cluster/namespace/name/sinkId`."""

from __future__ import annotations

from typing import NamedTuple, Self


class OwnerIdentity(NamedTuple):
    """`cluster`: the uid of the namespace kube-system, or a host name outside of Kubernetes."""

    cluster: str
    namespace: str
    name: str
    sink_id: str

    def __str__(self) -> str:
        return "/".join(self)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError for other text than four elements separated by slashes."""
        elements = text.split("/")
        if len(elements) != len(cls._fields) or not all(each and each.isprintable() for each in elements):
            raise ValueError(f"{text!r} is not cluster/namespace/name/sinkId")
        return cls(*elements)
