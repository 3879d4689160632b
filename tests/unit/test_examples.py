"""The examples in docstrings."""

from __future__ import annotations

import doctest
import importlib
from typing import Final

import pytest

MODULES: Final = ("sink_job.arrow.varints", "sink_job.avro.visitor", "sink_job.connect.visitor")


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_are_right(name: str) -> None:
    failed, attempted = doctest.testmod(importlib.import_module(name))
    assert not failed
    assert attempted
