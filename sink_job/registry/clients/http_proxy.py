"""The proxy of the HTTP clients of registries."""

from __future__ import annotations

import ssl

import httpx2

from sink_job.registry.settings import RegistrySettings, authorities


def http_proxy(settings: RegistrySettings, url: str) -> httpx2.Proxy | None:
    """The proxy for requests to `url`. None: that of the environment, or none after `bypass_proxy`.

    Raises SecretNotFound and InvalidCredentials for the login of the proxy.
    """
    proxy = settings.proxy
    if proxy is None or not proxy.is_used_for(url):
        return None
    ca_file = authorities(settings)
    is_plain = proxy.url.startswith("http://") or ca_file is None
    return httpx2.Proxy(
        proxy.url,
        auth=proxy.login(),
        ssl_context=None if is_plain else ssl.create_default_context(cafile=str(ca_file)),
    )


def bypass_proxy(client: httpx2.Client, settings: RegistrySettings, url: str) -> None:
    """Takes the proxy of the environment from a client whose `url` is in noProxy. The client libraries have no setting
    for it."""
    if settings.proxy is not None and not settings.proxy.is_used_for(url):
        client._mounts.clear()
