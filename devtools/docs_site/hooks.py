"""Hooks of MkDocs: pages that are outside of docs/, links to files of the repository, and the script of diagrams.

MkDocs imports this file by its path (mkdocs.yml), without the repository on `sys.path`.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
# Pages of the site that are files outside of docs/, and what the site calls them.
INCLUDED = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "bench/README.md": "benchmarks.md",
    "charts/s3sink-operator/README.md": "chart-values.md",
    "examples/README.md": "examples.md",
    "examples/kafka-connect/README.md": "examples-kafka-connect.md",
}
MERMAID = "assets/mermaid.min.js"
_SOURCES = {page: source for source, page in INCLUDED.items()}
_TARGET = re.compile(r"(?<=\]\()[^)\s]+(?=\))")
_FENCE = re.compile(r"(?ms)^( *)(```+).*?^\1\2 *$")


def on_files(files: Any, config: Any) -> Any:
    for source, page in INCLUDED.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    if script := os.environ.get("S3SINK_MERMAID"):
        files.append(File.generated(config, MERMAID, abs_src_path=script))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    uri: str = page.file.src_uri
    return with_links(markdown, uri, blob=f"{config.extra['repository']}/blob/{config.extra['ref']}")


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """The script of diagrams, 5 MB, only on pages that have one. The theme uses it where it is loaded already."""
    if 'class="mermaid"' not in output or "S3SINK_MERMAID" not in os.environ:
        return output
    script = posixpath.relpath(MERMAID, page.url or ".")
    return output.replace("</head>", f'<script src="{script}"></script></head>', 1)


def with_links(markdown: str, uri: str, *, blob: str) -> str:
    """The text with links for the page `uri` of the site: to other pages by their names there, to other files of the
    repository below the URL `blob`. Raises PluginError for a link without a target."""
    source = _SOURCES.get(uri, f"docs/{uri}")
    text, end = [], 0
    for fence in _FENCE.finditer(markdown):
        text += [_rewritten(markdown[end : fence.start()], source, uri, blob), fence[0]]
        end = fence.end()
    return "".join([*text, _rewritten(markdown[end:], source, uri, blob)])


def _rewritten(text: str, source: str, uri: str, blob: str) -> str:
    return _TARGET.sub(lambda link: _target(link[0], source, uri, blob), text)


def _target(link: str, source: str, uri: str, blob: str) -> str:
    path, mark, anchor = link.partition("#")
    if not path or re.match(r"\w+:", path):
        return link
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if not (ROOT / target).exists():
        raise PluginError(f"{source}: the link {link} has no target: no file {target} is in the repository")
    page = INCLUDED.get(target, target.removeprefix("docs/") if target.startswith("docs/") else None)
    if page is None or (ROOT / target).is_dir():
        return f"{blob}/{target}{mark}{anchor}"
    return posixpath.relpath(page, posixpath.dirname(uri) or ".") + mark + anchor
