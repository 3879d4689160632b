"""The content of a distribution."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "package", [ROOT / "sink_job", ROOT / "operator" / "s3sink_operator"], ids=lambda path: path.name
)
def test_every_folder_with_modules_is_a_package_and_part_of_the_wheel(package: Path) -> None:
    folders = {module.parent for module in package.rglob("*.py")}
    assert package in folders
    assert [str(folder.relative_to(ROOT)) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []
