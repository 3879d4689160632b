"""Steps of .github/workflows/release.yaml that need no registry: `python -m tools.release STEP`.

- `check TAG`: whether all files have the version of the tag, and the changelog a section for it.
- `chart OUT`: a copy of the chart with the images by digest and the metadata for Artifact Hub.
- `plugin OUT`: the archive of the kubectl plug-in for this machine's platform (needs PyInstaller).
- `krew ARCHIVES`: the manifest of the plug-in for krew, with the checksums of all archives, on standard output.
"""

from __future__ import annotations

import argparse
import hashlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parent.parent
CHART: Final = Path("charts") / "s3sink-operator"
ICON: Final = "docs/images/icon.svg"
PLUGIN: Final = "kubectl-s3sink"
PLATFORMS: Final = ("linux_amd64", "linux_arm64", "darwin_arm64")
"""Platforms of the plug-in, as `<os>_<architecture>` in the words of Go."""

_KINDS: Final = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


class ReleaseError(Exception):
    """A release that must not be made, with the file and what to change."""


def versions(root: Path = ROOT) -> dict[str, str]:
    """The version in each file that has one."""
    chart = yaml.safe_load((root / CHART / "Chart.yaml").read_text(encoding="utf-8"))
    found = {
        "pyproject.toml": str(
            tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
        ),
        f"{CHART}/Chart.yaml (version)": str(chart["version"]),
        f"{CHART}/Chart.yaml (appVersion)": str(chart["appVersion"]),
    }
    arguments = re.findall(r"(?m)^ARG VERSION=(.+)$", (root / "Dockerfile").read_text(encoding="utf-8"))
    return found | {f"Dockerfile (ARG VERSION {number})": text for number, text in enumerate(arguments, 1)}


def check(tag: str, root: Path = ROOT) -> str:
    """The version of `tag`. Raises ReleaseError if a file has another one or the changelog has no section for it."""
    if not re.fullmatch(r"v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?", tag):
        raise ReleaseError(f"tag {tag}: not a version such as v0.1.0")
    version = tag.removeprefix("v")
    wrong = [f"{file} has {found}" for file, found in versions(root).items() if found != version]
    if wrong:
        raise ReleaseError(f"tag {tag}: {'; '.join(wrong)}. Set the version in all files, and tag that commit.")
    if not list(changes((root / "CHANGELOG.md").read_text(encoding="utf-8"), version)):
        raise ReleaseError(f"tag {tag}: CHANGELOG.md has no entries below '## {version}'. Rename 'Unreleased'.")
    return version


def changes(changelog: str, version: str) -> Iterator[tuple[str, str]]:
    """The entries of a version: the kind (`added`, `fixed`) and the text without Markdown links, in order."""
    heading = re.compile(rf"## \[?{re.escape(version)}\]?( |$)")
    inside, kind = False, ""
    entry: list[str] = []
    for line in [*changelog.splitlines(), "## "]:
        if entry and not line.startswith("  "):
            yield kind, re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", " ".join(entry))
            entry = []
        if line.startswith("## "):
            inside, kind = heading.match(line) is not None, ""
        elif not inside:
            continue
        elif line.startswith("### ") and line[4:].strip() in _KINDS:
            kind = line[4:].strip().lower()
        elif kind and (line.startswith("- ") or entry):
            entry.append(line.removeprefix("- ").strip())


def chart(out: Path, *, repository: str, registry: str, digests: Mapping[str, str], root: Path = ROOT) -> Path:
    """The chart as it is published, in a new folder of `out`.

    `repository`: `owner/name` on GitHub. `registry`: the prefix of the images, such as `ghcr.io/owner`. `digests`:
    `sha256:…` of the images `s3sink-operator` and `s3sink-job`. Raises ReleaseError if a place for one is missing.
    """
    copy = out / CHART.name
    shutil.copytree(root / CHART, copy)
    about = yaml.safe_load((copy / "Chart.yaml").read_text(encoding="utf-8"))
    version, source = str(about["version"]), f"https://github.com/{repository}"
    images = {name: f"{registry}/{name}" for name in ("s3sink-operator", "s3sink-job")}
    about |= {
        "home": source,
        "sources": [source],
        "icon": f"https://raw.githubusercontent.com/{repository}/v{version}/{ICON}",
    }
    listed = changes((root / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    about["annotations"] |= {
        "artifacthub.io/changes": _block([{"kind": kind, "description": text} for kind, text in listed]),
        "artifacthub.io/images": _block(
            [{"name": name, "image": f"{image}@{digests[name]}"} for name, image in images.items()]
        ),
        "artifacthub.io/links": _block([{"name": "Documentation", "url": f"{source}/tree/v{version}/docs"}]),
    }
    (copy / "Chart.yaml").write_text(yaml.safe_dump(about, sort_keys=False, width=1000), encoding="utf-8")
    values = (copy / "values.yaml").read_text(encoding="utf-8")
    for section, name in (("image", "s3sink-operator"), ("jobImage", "s3sink-job")):
        values = _set(values, section, "repository", images[name])
        values = _set(values, section, "digest", digests[name])
    (copy / "values.yaml").write_text(values, encoding="utf-8")
    readme = (copy / "README.md").read_text(encoding="utf-8")
    (copy / "README.md").write_text(readme.replace("](../../", f"]({source}/blob/v{version}/"), encoding="utf-8")
    return copy


def _set(values: str, section: str, key: str, value: str) -> str:
    """`values` with an empty text in a section replaced; comments stay."""
    before, head, rest = values.partition(f"\n{section}:\n")
    end = re.search(r"(?m)^\S", rest)
    body = rest[: end.start()] if end else rest
    empty = f'  {key}: ""\n'
    if body.count(empty) != 1:
        raise ReleaseError(f"values.yaml: {section}.{key} is not an empty text; the release sets it")
    return before + head + body.replace(empty, f'  {key}: "{value}"\n') + rest[len(body) :]


def _block(items: Sequence[Mapping[str, str]]) -> str:
    return yaml.safe_dump(list(items), sort_keys=False, width=1000)


def plugin(out: Path, root: Path = ROOT) -> Path:
    """Builds the archive of the kubectl plug-in for this machine: the program, its libraries and the licence."""
    target = f"{platform.system().lower()}_{_MACHINES.get(platform.machine(), platform.machine())}"
    version = versions(root)["pyproject.toml"]
    entry = out / "entry.py"
    out.mkdir(parents=True, exist_ok=True)
    entry.write_text(
        "import sys\nfrom s3sink_operator.kubectl.command import main\nsys.exit(main())\n", encoding="utf-8"
    )
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--onedir", "--name", PLUGIN, "--log-level", "WARN"]
    places = [f"--{name}={out / name}" for name in ("distpath", "workpath", "specpath")]
    subprocess.run([*command, *places, str(entry)], check=True)
    archive = out / f"{PLUGIN}_v{version}_{target}.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(out / "distpath" / PLUGIN, PLUGIN)
        packed.add(root / "LICENSE", "LICENSE")
    return archive


def krew(archives: Path, *, repository: str, version: str) -> dict[str, Any]:
    """The plug-in's manifest for krew. Raises ReleaseError if the archive of a platform is missing."""
    source = f"https://github.com/{repository}"
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "s3sink"},
        "spec": {
            "version": f"v{version}",
            "homepage": source,
            "shortDescription": "Show, pause, restart and reset S3Sinks",
            "description": (
                "Shows the status of S3Sinks, which copy Kafka topics to S3 with exactly-once delivery, and requests\n"
                "restarts, pauses and offset resets. Requires the s3sink operator in the cluster.\n"
            ),
            "platforms": [_platform(archives, source, version, name) for name in PLATFORMS],
        },
    }


def _platform(archives: Path, source: str, version: str, name: str) -> dict[str, Any]:
    system, architecture = name.split("_")
    archive = archives / f"{PLUGIN}_v{version}_{name}.tar.gz"
    if not archive.is_file():
        raise ReleaseError(f"{archive} does not exist: build the plug-in on {name} first")
    return {
        "selector": {"matchLabels": {"os": system, "arch": architecture}},
        "uri": f"{source}/releases/download/v{version}/{archive.name}",
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        "bin": f"{PLUGIN}/{PLUGIN}",
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0, or 1 with an error on standard error."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description="Steps of a release.")
    steps = parser.add_subparsers(dest="step", required=True)
    steps.add_parser("check").add_argument("tag")
    for step, place in (("chart", "out"), ("plugin", "out"), ("krew", "archives")):
        added = steps.add_parser(step)
        added.add_argument(place, type=Path)
        if step != "plugin":
            added.add_argument("--repository", required=True, help="owner/name on GitHub")
        if step == "chart":
            added.add_argument("--registry", required=True, help="prefix of the images, such as ghcr.io/owner")
            added.add_argument("--operator-digest", required=True, help="sha256:… of s3sink-operator")
            added.add_argument("--job-digest", required=True, help="sha256:… of s3sink-job")
    args = parser.parse_args(arguments)
    try:
        print(_step(args))
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


def _step(args: argparse.Namespace) -> str:
    if args.step == "check":
        return check(args.tag)
    if args.step == "plugin":
        return str(plugin(args.out))
    if args.step == "krew":
        manifest = krew(args.archives, repository=args.repository, version=versions()["pyproject.toml"])
        return yaml.safe_dump(manifest, sort_keys=False, width=1000).rstrip()
    digests = {"s3sink-operator": args.operator_digest, "s3sink-job": args.job_digest}
    return str(chart(args.out, repository=args.repository, registry=args.registry, digests=digests))


if __name__ == "__main__":
    sys.exit(main())
