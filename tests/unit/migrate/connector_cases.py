"""The cases in `connectors/`: a public configuration, its source, and what `s3sink convert` makes of it.

`python -m tests.unit.migrate.connector_cases` writes the expectations again after a change on purpose; the difference
is part of the review.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sink_job.cli.main import main

FOLDER = Path(__file__).parent / "connectors"


@dataclass(frozen=True)
class ConnectorCase:
    """`arguments` follow the input on the command line. `worker` is the content of the file of `--worker`."""

    name: str
    source: str
    input: str
    arguments: tuple[str, ...]
    worker: str | None
    exit_code: int
    output: str
    errors: str


def connector_cases() -> Iterator[ConnectorCase]:
    for file in sorted(FOLDER.glob("*.yaml")):
        found = yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
        yield ConnectorCase(
            name=file.stem,
            source=found["source"],
            input=found["input"],
            arguments=tuple(found.get("arguments", ())),
            worker=found.get("worker"),
            exit_code=found["exit"],
            output=found.get("output", ""),
            errors=found.get("errors", ""),
        )


def converted(case: ConnectorCase, *more: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of the command."""
    out, err = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "connector"
        file.write_text(case.input, encoding="utf-8")
        words = ["convert", str(file), *case.arguments, *more]
        if case.worker is not None:
            worker = Path(folder) / "worker"
            worker.write_text(case.worker, encoding="utf-8")
            words += ["--worker", str(worker)]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
    return code, out.getvalue(), err.getvalue()


def as_text(fields: Mapping[str, Any]) -> str:
    """A case as YAML, with texts of several lines as they are."""
    lines = []
    for key, value in fields.items():
        if isinstance(value, str) and "\n" in value:
            lines.append(f"{key}: |\n" + "".join(f"  {line}\n" if line else "\n" for line in value.split("\n")[:-1]))
        else:
            lines.append(f"{key}: {json.dumps(value, ensure_ascii=False)}\n")
    return "".join(lines)


def write_expectations() -> None:
    for case in connector_cases():
        code, output, errors = converted(case)
        fields: dict[str, Any] = {"source": case.source}
        fields |= {"arguments": list(case.arguments)} if case.arguments else {}
        fields |= {"input": case.input}
        fields |= {"worker": case.worker} if case.worker is not None else {}
        fields |= {"exit": code, "errors": errors, "output": output}
        text = as_text({key: value for key, value in fields.items() if value != ""})
        (FOLDER / f"{case.name}.yaml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_expectations()
    sys.exit(0)
