"""What this machine's pip is configured with, and the same settings for uv, which reads none of pip's files."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

# Where `pip config list` found a setting, the strongest last: files for all commands, files for `pip install`, and
# variables (PIP_...).
_SECTIONS = ("global", "install", ":env:")


@dataclass(frozen=True)
class PipSettings:
    """The settings by pip's long option names; a setting of several values has one a line or word."""

    values: Mapping[str, str]

    def words(self, name: str) -> list[str]:
        return self.values.get(name, "").split()

    def uv_options(self) -> list[str]:
        """The options of `uv pip install` that have no variable."""
        options = ["--no-index"] if self.values.get("no-index", "").lower() in ("1", "true", "yes", "on") else []
        for place in self.words("find-links"):
            if urlsplit(place).scheme or Path(place).expanduser().is_dir():  # uv rejects a folder that is not there
                options += ["--find-links", place]
        return options

    def uv_environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Variables for uv; those that are `given` already are left to their owner."""
        found = {
            "UV_DEFAULT_INDEX": self.values.get("index-url", ""),
            "UV_INDEX": " ".join(self.words("extra-index-url")),
            # pip takes the best version of all indexes. The hashes say which files are accepted.
            "UV_INDEX_STRATEGY": "unsafe-best-match" if self.words("extra-index-url") else "",
            "UV_INSECURE_HOST": " ".join(self.words("trusted-host")),
            "UV_HTTP_TIMEOUT": self.values.get("timeout") or self.values.get("default-timeout", ""),
            "SSL_CERT_FILE": self.values.get("cert", ""),
            "SSL_CLIENT_CERT": self.values.get("client-cert", ""),
            "ALL_PROXY": self.values.get("proxy", ""),
        }
        if given.get("UV_INDEX_URL"):
            found.pop("UV_DEFAULT_INDEX")
        return {name: value for name, value in found.items() if value and not given.get(name)}


def read(python: Path) -> PipSettings:
    """The settings of the pip of `python`."""
    done = subprocess.run([python, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False)
    return parse(done.stdout)


def parse(listing: str) -> PipSettings:
    """The settings of `pip config list`'s output: `section.name='value'` a line."""
    found: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for line in listing.splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.rpartition(".")
        if section in found:
            found[section][name] = str(ast.literal_eval(value))
    return PipSettings({name: value for section in _SECTIONS for name, value in found[section].items()})
