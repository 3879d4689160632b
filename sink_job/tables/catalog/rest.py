"""PyIceberg's REST catalog with the connections of a sink: login, certificate authorities, proxy, timeouts.

PyIceberg has no timeout, and takes certificate authorities from the environment rather than from its settings. So each
of its sessions gets an adapter that decides about all of these. No request is sent twice, but for one that the catalog
has rejected with 401 or 419.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import requests
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.rest.auth import AuthManagerAdapter
from requests.adapters import HTTPAdapter

from sink_job.tables.catalog.access import CatalogAccess
from sink_job.tables.catalog.login import CatalogLogin
from sink_job.tables.catalog.untrusted import server_properties

_WITHOUT_LOGIN: Final = {"type": "noop"}


class SinkRestCatalog(RestCatalog):
    """A REST catalog."""

    def __init__(self, name: str, access: CatalogAccess, properties: Mapping[str, str]) -> None:
        """Asks the catalog for its configuration. Raises SinkError for the login, and the errors of PyIceberg."""
        self._access = access
        directory, url = access.credentials_dir, properties["uri"].rstrip("/")
        self._login: CatalogLogin | None = None
        if directory is not None:
            sessions = partial(_new_session, access)
            self._login = CatalogLogin(directory, f"{url}/v1/oauth/tokens", sessions, access.hide)
        given: dict[str, Any] = {**properties, "auth": _WITHOUT_LOGIN}
        super().__init__(name, **given)

    def _fetch_config(self) -> None:
        """Raises ConfigurationError if the server names another address."""
        own = dict(self.properties)
        super()._fetch_config()
        self.properties = server_properties(own, self.properties)

    def _create_session(self) -> requests.Session:
        session = _prepared(super()._create_session(), self._access)
        if self._login is not None:
            session.auth = AuthManagerAdapter(self._login)
        return session

    def _refresh_token(self) -> None:
        if self._login is not None:
            self._login.forget()


def _new_session(access: CatalogAccess) -> requests.Session:
    return _prepared(requests.Session(), access)


def _prepared(session: requests.Session, access: CatalogAccess) -> requests.Session:
    """The session with the connections of `access`. It follows no redirect: a POST would become a GET, and its reply
    would look like that of the commit."""
    session.max_redirects = 0
    for scheme in ("https://", "http://"):
        session.mount(scheme, _Adapter(access))
    return session


class _Adapter(HTTPAdapter):
    """Sends each request once."""

    def __init__(self, access: CatalogAccess) -> None:
        super().__init__(max_retries=0)
        self._access = access

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> requests.Response:
        ca_file, proxy = self._access.authorities(), self._access.proxy
        if ca_file is not None:
            verify = str(ca_file)
        if proxy is not None:
            is_used = proxy.is_used_for(request.url or "")
            proxies = dict.fromkeys(("http", "https"), proxy.url_with_login()) if is_used else {}
        return super().send(request, stream, timeout or self._access.timeout_s, verify, cert, proxies)
