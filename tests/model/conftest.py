"""Shows counter-examples when pytest is asked to be verbose."""

from collections.abc import Callable

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "model: a search of the protocol's model that takes longer than a second or two")


@pytest.fixture
def show(pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]) -> Callable[[object], None]:
    """Prints something at `-v`, whatever becomes of the test."""

    def printed(what: object) -> None:
        if pytestconfig.get_verbosity() > 0:
            with capsys.disabled():
                print(f"\n{what}")

    return printed
