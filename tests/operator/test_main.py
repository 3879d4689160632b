"""The start of the operator without a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from s3sink_operator.main import main

NO_CONTEXT = "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: []\nclusters: []\nusers: []\n"


@pytest.mark.parametrize(
    "content", [None, "", "token: [", "text", NO_CONTEXT], ids=["missing", "empty", "no YAML", "a text", "no context"]
)
def test_without_a_usable_kubeconfig_one_line_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    monkeypatch.setenv("KUBECONFIG", str(path))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert main(["--image", "job"]) == 2
    error = capsys.readouterr().err
    assert f"no usable kubeconfig at {path}" in error
    assert "Set KUBECONFIG" in error
    assert len(error.splitlines()) == 1
