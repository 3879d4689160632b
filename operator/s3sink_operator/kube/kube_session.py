"""The HTTP session of the requests to the API server, with the credentials and certificates of a Kubernetes client.

The session of the client itself reads `.netrc` and the proxies of the environment for each request. This one finds the
proxy once. The watches of Kopf use the same one (`handlers`).
"""

from __future__ import annotations

import logging
import os
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import yaml
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration
from yarl import URL

TIMEOUT_S: Final = 30.0
"""Time limit of a request with its response."""
_UNUSABLE: Final = (
    config.ConfigException, yaml.YAMLError, OSError, TypeError, ValueError, KeyError, AttributeError,
)  # fmt: skip
"""What the client raises for files that are missing or no kubeconfig."""
_TIMEOUT: Final = aiohttp.ClientTimeout(total=TIMEOUT_S)


class KubeConfigError(Exception):
    """There is no usable configuration of a Kubernetes client: where it was looked for, the cause, and what to do."""


async def load_config() -> None:
    """Loads the configuration of the Kubernetes client: that of the pod, or else the kubeconfig. Raises
    KubeConfigError."""
    logging.getLogger("kubernetes.aio.config").setLevel(logging.ERROR)  # it warns of a missing file, as the error does
    try:
        config.load_incluster_config()
    except config.ConfigException as in_pod:
        path = os.environ.get("KUBECONFIG")
        try:
            await config.load_kube_config(config_file=path)
        except _UNUSABLE as error:
            raise KubeConfigError(
                f"no connection to a cluster: no service account of a pod ({in_pod}), and no usable kubeconfig at "
                f"{path or '~/.kube/config'} ({_cause(error)}). Set KUBECONFIG to a kubeconfig with a current context, "
                "or run the operator in a pod"
            ) from None


def _cause(error: Exception) -> str:
    """The error in one line, without the content of the file."""
    known = isinstance(error, config.ConfigException)
    return " ".join(str(error).split()).rstrip(".") if known else f"{type(error).__name__}: not a kubeconfig"


@dataclass(frozen=True)
class Proxy:
    """A proxy on the way to the API server. `url`: without a login, so that errors of requests quote none. `headers`:
    those for the proxy alone, with its login."""

    url: URL
    headers: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class KubeSession:
    """Sends requests. `options`: those of the connection. `headers`: those of each request."""

    client: ApiClient
    http: aiohttp.ClientSession
    options: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    async def send(self, method: str, path: str, body: bytes | None, content_type: str) -> aiohttp.ClientResponse:
        """The response, before its content is read. `path` is encoded, with its query. Raises aiohttp.ClientError and
        TimeoutError."""
        headers = {"Accept": "application/json", "Content-Type": content_type, **self.headers}
        # The client reads a token file again before the token expires.
        await self.client.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
        url = URL(self.client.configuration.host + path, encoded=True)
        # A pod behind the API server's proxy may redirect, and the headers have the operator's token.
        return await self.http.request(
            method, url, data=body, headers=headers, timeout=_TIMEOUT, allow_redirects=False, **self.options
        )


@asynccontextmanager
async def open_session(client: ApiClient) -> AsyncIterator[KubeSession]:
    """A session with the configuration of `client`, closed at the end of the context."""
    configuration = client.configuration
    context: ssl.SSLContext = client.rest_client.ssl_context
    connector = aiohttp.TCPConnector(limit=configuration.connection_pool_maxsize, ssl=context)
    options = {"server_hostname": configuration.tls_server_name} if configuration.tls_server_name else {}
    headers: Mapping[str, str] = {}
    if (proxy := proxy_of(configuration)) is not None:
        options |= {"proxy": proxy.url, "proxy_headers": proxy.headers}
        if urlsplit(configuration.host).scheme == "http":  # no tunnel: the proxy reads the headers of the request
            headers = proxy.headers
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as http:
        yield KubeSession(client, http, options, headers)


def proxy_url_of(configuration: Configuration) -> str | None:
    """The URL of the proxy for the API server, with its login: that of the kubeconfig, else that of the environment."""
    return configuration.proxy or proxy_of_environment(configuration.host)


def proxy_of(configuration: Configuration) -> Proxy | None:
    """The proxy for the API server. None without one."""
    if (found := proxy_url_of(configuration)) is None:
        return None
    url, headers = URL(found), dict(configuration.proxy_headers or {})
    if url.user is not None or url.password is not None:
        login = f"{url.user or ''}:{url.password or ''}"
        headers["Proxy-Authorization"] = f"Basic {b64encode(login.encode()).decode()}"
    return Proxy(url.with_user(None), headers)


def proxy_of_environment(server: str) -> str | None:
    """The proxy for this URL by HTTPS_PROXY, HTTP_PROXY and NO_PROXY, which may list networks such as 10.96.0.0/12;
    None without one."""
    url, proxies = urlsplit(server), getproxies()
    host = url.hostname or ""
    if proxy_bypass(host) or _is_in_networks(host, proxies.get("no", "")):
        return None
    proxy = proxies.get(url.scheme)
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def _is_in_networks(host: str, networks: str) -> bool:
    """Whether `host` is an IP address in one of the comma-separated networks."""
    for each in networks.split(","):
        with suppress(ValueError):
            if "/" in each and ip_address(host) in ip_network(each.strip(), strict=False):
                return True
    return False
