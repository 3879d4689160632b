"""Argo CD's own code on sinks: the settings of argocd-cm.yaml, health checks and actions."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
SETTINGS = ROOT / "argocd" / "argocd-cm.yaml"


@dataclass(frozen=True)
class ArgoCd:
    """The program of `devtools.argocd`, with the settings of this project."""

    program: Path

    def health(self, sink: Json) -> Json:
        """Status and message, as Argo CD shows them."""
        return dict(self.answers([{"object": sink}])[0]["health"])

    def act(self, sink: Json, action: str) -> Json:
        """The sink that Argo CD writes for an action."""
        (made,) = self.answers([{"object": sink, "action": action}])[0]["resources"]
        assert made["operation"] == "patch"
        return dict(made["resource"])

    def actions(self, sink: Json) -> dict[str, bool]:
        """Whether each action is disabled, by its name."""
        found = self.answers([{"object": sink}])[0]["actions"]
        return {each["name"]: each.get("disabled", False) for each in found}

    def answers(self, requests: Sequence[Json]) -> list[Json]:
        """The answers to requests; none may be an error."""
        text = "".join(f"{json.dumps(each)}\n" for each in requests)
        command = [str(self.program), str(SETTINGS)]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found = [json.loads(line) for line in done.stdout.splitlines()]
        assert not [each for each in found if "error" in each]
        return found
