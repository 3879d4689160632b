"""Reads the YAML of a manifest."""

from __future__ import annotations

import yaml


def read(text: str) -> object:
    return yaml.safe_load(text)
