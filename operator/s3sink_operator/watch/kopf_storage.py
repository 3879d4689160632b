"""The storages of Kopf's change handlers, which the operator does not have: they keep nothing.

Kopf copies each object of each event to find changes. Without change handlers these copies are not used.
"""

from __future__ import annotations

from typing import Any

import kopf


class NoDiffBaseStorage(kopf.DiffBaseStorage):
    """No object has a previous state."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> kopf.BodyEssence | None:
        return None

    def store(self, **_: Any) -> None: ...


class NoProgressStorage(kopf.ProgressStorage):
    """No handler has a progress."""

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None: ...

    def purge(self, **_: Any) -> None: ...

    def touch(self, **_: Any) -> None: ...

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        return essence
