"""Makes what the chart and Argo CD keep as copies: the chart's table of values, its CRD and restrictions of sinks, and
Argo CD's settings.

`python tools/chart.py` writes them; with `--check` it writes nothing and ends with 1, naming what is out of date.
values.yaml is read line by line, as the descriptions are its comments (`# -- ` above a key, more lines with `# `).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from s3sink_operator.config import admission

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "charts" / "s3sink-operator"
CRD = ROOT / "crds" / "s3sinks.s3sink.io.yaml"
ARGOCD = ROOT / "argocd"
CUSTOMIZATION = ARGOCD / "s3sink.io" / "S3Sink"

BEGIN, END = "<!-- values: made by `make chart` -->", "<!-- end of values -->"
_MARK = "# -- "


@dataclass(frozen=True)
class Value:
    """One documented value: its path, as `--set` takes it, its default and its description."""

    path: str
    default: Any
    about: str


def documented(text: str) -> Iterator[Value]:
    """The values of a values.yaml in its order. Raises ValueError for a description without a key below it."""
    defaults = yaml.safe_load(text)
    above: list[tuple[int, str]] = []
    about: list[str] = []
    for line in text.splitlines():
        bare = line.strip()
        if bare.startswith(_MARK):
            about = [bare.removeprefix(_MARK)]
        elif bare.startswith("# ") and about:
            about.append(bare.removeprefix("# "))
        elif bare and not bare.startswith(("#", "- ")) and ":" in bare:
            depth = len(line) - len(line.lstrip())
            above = [(indent, key) for indent, key in above if indent < depth] + [(depth, bare.partition(":")[0])]
            if about:
                keys = [key for _, key in above]
                yield Value(".".join(keys), _at(defaults, keys), " ".join(about))
                about = []
        elif about:
            raise ValueError(f"a description without a key below it: {about[0]}")


def undocumented(text: str) -> list[str]:
    """Paths of the values that no description covers, neither their own nor one of a mapping around them."""
    covered = {value.path for value in documented(text)}
    return [path for path in _leaves(yaml.safe_load(text), "") if not _is_covered(path, covered)]


def table(text: str) -> str:
    """The values of a values.yaml as a Markdown table."""
    rows = [f"| `{it.path}` | `{_shown(it.default)}` | {it.about} |" for it in documented(text)]
    return "\n".join(["| value | default | |", "|---|---|---|", *rows])


def readme(now: str, values: str) -> str:
    """README.md with the table of `values` between its marks. Raises ValueError where a mark is missing."""
    before, begin, rest = now.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"README.md lacks {BEGIN} or {END}")
    return f"{before}{BEGIN}\n{table(values)}\n{END}{after}"


def argocd_settings() -> str:
    """A patch for Argo CD's ConfigMap argocd-cm, with the health check and the actions of argocd/."""
    actions = [{"name": path.parent.name, "action.lua": path.read_text()} for path in _actions()]
    discovery = (CUSTOMIZATION / "actions" / "discovery.lua").read_text()
    data = {
        "resource.customizations.health.s3sink.io_S3Sink": (CUSTOMIZATION / "health.lua").read_text(),
        "resource.customizations.actions.s3sink.io_S3Sink": yaml.dump(
            {"discovery.lua": discovery, "definitions": actions}, Dumper=_Readable, sort_keys=False, width=1000
        ),
    }
    return "# Made from s3sink.io/S3Sink by `make chart`; do not edit.\n" + yaml.dump(
        {"data": data}, Dumper=_Readable, sort_keys=False, width=1000
    )


def sink_restrictions() -> str:
    """What the chart's ValidatingAdmissionPolicy allows in pod templates."""
    return "# Made from s3sink_operator.config.sink_restrictions by `make chart`; do not edit.\n" + yaml.dump(
        admission.restrictions_document(), Dumper=_Readable, sort_keys=False, width=100_000
    )


def outputs() -> dict[Path, str]:
    """What each file has to hold."""
    readme_file = CHART / "README.md"
    return {
        readme_file: readme(readme_file.read_text(), (CHART / "values.yaml").read_text()),
        CHART / "files" / "crd.yaml": CRD.read_text(),
        CHART / "files" / "sink-restrictions.yaml": sink_restrictions(),
        ARGOCD / "argocd-cm.yaml": argocd_settings(),
    }


def main(arguments: Sequence[str]) -> int:
    """Exit code: 0, or 1 when `--check` finds a file that is out of date."""
    stale = [path for path, text in outputs().items() if not path.exists() or path.read_text() != text]
    if "--check" in arguments:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date: run `make chart`", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(outputs()[path])
        print(f"written: {path.relative_to(ROOT)}")
    return 0


class _Readable(yaml.SafeDumper):
    """Texts of several lines as blocks, as people write them."""


def _block(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Readable.add_representer(str, _block)


def _actions() -> list[Path]:
    return sorted((CUSTOMIZATION / "actions").glob("*/action.lua"))


def _at(document: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        document = document[key]
    return document


def _leaves(document: Any, path: str) -> Iterator[str]:
    if isinstance(document, dict) and document:
        for key, value in document.items():
            yield from _leaves(value, f"{path}.{key}" if path else key)
    else:
        yield path


def _is_covered(path: str, covered: set[str]) -> bool:
    keys = path.split(".")
    return any(".".join(keys[: length + 1]) in covered for length in range(len(keys)))


def _shown(default: Any) -> str:
    return json.dumps(default, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
