"""What the registries with a REST API have in common: endpoints, credentials and retries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Generic, TypeVar

from sink_job.registry.clients import errors
from sink_job.registry.clients.connection import Closable, Endpoints
from sink_job.registry.clients.requests import Requests
from sink_job.registry.credentials import RegistryCredentials
from sink_job.registry.settings import RegistrySettings

C = TypeVar("C", bound=Closable)


class RestRegistry(Generic[C]):
    """A registry whose requests are sent by clients of type C, one for each URL."""

    def __init__(
        self,
        settings: RegistrySettings,
        factory_of: Callable[[RegistrySettings, RegistryCredentials | None], Callable[[str], C]],
        wait: Callable[[float], bool],
        hide: Callable[[Iterable[str]], None],
    ) -> None:
        """Sends no request. `factory_of` and `hide`: see `Endpoints`. `wait` pauses for a number of seconds and returns
        True if the driver has to stop."""
        self.settings = settings
        self._endpoints = Endpoints(settings, factory_of, hide)
        self._requests = Requests(
            self._endpoints,
            partial(errors.failure_of, has_credentials=settings.credentials_dir is not None),
            settings.retry,
            wait,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url})"

    @property
    def url(self) -> str:
        """The URLs of the registry."""
        return self.settings.url

    def close(self) -> None:
        """Closes the connections."""
        self._endpoints.close()
