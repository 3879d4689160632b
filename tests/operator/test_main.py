"""The operator's command line: what is wrong is said in a sentence before anything is asked of an API server."""

from __future__ import annotations

import pytest

from s3sink_operator.main import main


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ([], "--image is required"),
        (["--image", "job", "--resync", "0s"], "--resync 0s is below 0.1 s"),
        (["--image", "job", "--node-lost-timeout", "soon"], "--node-lost-timeout"),
        (["--image", "job", "--config", "/nosuch"], "--config /nosuch: No such file or directory"),
        (["--image", "job", "--run-as-user", "root"], "root is neither a uid nor Cluster"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_flag_is_named_and_ends_with_2(flags: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(flags) == 2
    assert said in capsys.readouterr().err
