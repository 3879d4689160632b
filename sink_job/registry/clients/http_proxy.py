"""The proxy of the HTTP clients of registries."""

from __future__ import annotations

import ssl

import httpx2

from sink_job.registry.settings import RegistrySettings, authorities


def http_proxy(settings: RegistrySettings, url: str) -> httpx2.Proxy | None:
    """The proxy for requests to `url`; None: that of the environment.

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
