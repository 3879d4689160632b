"""Shows counter-examples when pytest is requested to be verbose."""

from collections.abc import Callable

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "model: a search of the protocol model that takes more than about two seconds")


@pytest.fixture
def show(pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]) -> Callable[[object], None]:
    """Prints its argument at `-v`, also if the test passes."""

    def printed(what: object) -> None:
        if pytestconfig.get_verbosity() > 0:
            with capsys.disabled():
                print(f"\n{what}")

    return printed
