"""PyIceberg's REST catalog with the connections of a sink: login, certificate authorities, proxy, timeouts.

PyIceberg has no timeout, and takes certificate authorities from the environment rather than from its settings. So each
of its sessions gets an adapter that decides about all of these. No request is sent twice, but for one that the catalog
has rejected with 401 or 419.

Nessie 0.99 rejects two forms that Iceberg's specification allows: new columns without the highest column id of the
table (`last-column-id`, deprecated; other servers need it, too), and more than one update that sets properties. So
commits have the one and not the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import requests
from pydantic import Field
from pyiceberg.catalog.rest import Endpoints, RestCatalog
from pyiceberg.catalog.rest.auth import AuthManagerAdapter
from pyiceberg.catalog.rest.response import _handle_non_200_response
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.table import CommitTableRequest, CommitTableResponse, Namespace, Table, TableIdentifier
from pyiceberg.table.update import AddSchemaUpdate, SetPropertiesUpdate, TableRequirement, TableUpdate
from requests.adapters import HTTPAdapter

from sink_job.api.errors import TableNotRegistered
from sink_job.tables.catalog.access import CatalogAccess
from sink_job.tables.catalog.login import CatalogLogin
from sink_job.tables.catalog.untrusted import server_properties
from sink_job.tables.file_io import MAX_METADATA

_CHUNK: Final = 64 << 10
_WITHOUT_LOGIN: Final = {"type": "noop"}
_COMMIT_ERRORS: Final = {
    409: CommitFailedException,
    500: CommitStateUnknownException,
    502: CommitStateUnknownException,
    504: CommitStateUnknownException,
}


class _AddSchema(AddSchemaUpdate):
    """New columns, with the highest column id of the table afterwards."""

    last_column_id: int = Field(alias="last-column-id")


class SinkRestCatalog(RestCatalog):
    """A REST catalog."""

    def __init__(self, name: str, access: CatalogAccess, properties: Mapping[str, str]) -> None:
        """Asks the catalog for its configuration. Raises SinkError for the login, and the errors of PyIceberg."""
        self._access = access
        directory, url = access.credentials_dir, properties["uri"].rstrip("/")
        self._login: CatalogLogin | None = None
        if directory is not None:
            sessions = partial(_new_session, access)
            endpoint = f"{url}/v1/oauth/tokens"
            self._login = CatalogLogin(directory, endpoint, sessions, access.hide, insecure=access.insecure)
        given: dict[str, Any] = {**properties, "auth": _WITHOUT_LOGIN}
        super().__init__(name, **given)

    def _fetch_config(self) -> None:
        """Raises ConfigurationError if the server names another address."""
        own = dict(self.properties)
        super()._fetch_config()
        self.properties = server_properties(own, self.properties)

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """One request. Raises CommitFailedException, CommitStateUnknownException and other errors of PyIceberg."""
        identifier = table.name()
        request = CommitTableRequest(
            identifier=TableIdentifier(namespace=Namespace(list(identifier[:-1])), name=identifier[-1]),
            requirements=requirements,
            updates=_accepted(updates, table),
        )
        place = self._split_identifier_for_path(request.identifier)
        body = request.model_dump_json(serialize_as_any=True).encode()
        response = self._session.post(self.url(Endpoints.update_table, prefixed=True, **place), data=body)
        try:
            response.raise_for_status()
        except requests.HTTPError as error:
            _handle_non_200_response(error, _COMMIT_ERRORS)
        return CommitTableResponse.model_validate_json(response.text)

    def _create_session(self) -> requests.Session:
        session = _prepared(super()._create_session(), self._access)
        if self._login is not None:
            session.auth = AuthManagerAdapter(self._login)
        return session

    def _refresh_token(self) -> None:
        if self._login is not None:
            self._login.forget()


def _accepted(updates: Sequence[TableUpdate], table: Table) -> tuple[TableUpdate, ...]:
    """The updates in the form that all servers accept. None of them removes properties."""
    properties: dict[str, str] = {}
    others: list[TableUpdate] = []
    for each in updates:
        if isinstance(each, SetPropertiesUpdate):
            properties |= each.updates
        elif isinstance(each, AddSchemaUpdate):
            last = max(table.metadata.last_column_id, each.schema_.highest_field_id)
            others.append(_AddSchema.model_validate({"schema": each.schema_, "last-column-id": last}))
        else:
            others.append(each)
    return (*others, *([SetPropertiesUpdate(updates=properties)] if properties else ()))


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
    """Sends each request once, and reads the response up to a maximum."""

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
        response = super().send(request, True, timeout or self._access.timeout_s, verify, cert, proxies)
        response._content = _limited(response)  # whoever sends the request would read all of it
        return response


def _limited(response: requests.Response) -> bytes:
    """The body of a response. Raises TableNotRegistered for one that would not fit in the memory of a driver."""
    content = bytearray()
    for chunk in response.iter_content(_CHUNK):
        content += chunk
        if len(content) > MAX_METADATA:
            response.close()
            raise TableNotRegistered(
                f"the response of the catalog to {response.request.method} {response.url} has more than "
                f"{MAX_METADATA:,} bytes: expire snapshots of the table (table.maintenance.expire_snapshots() of "
                "PyIceberg), then register again"
            )
    return bytes(content)
