"""The HTTP proxy of a sink: which requests use it, and its login from a mounted Secret.

Without `spec.s3.proxy` the libraries use the proxy of the environment (HTTPS_PROXY, NO_PROXY).
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from sink_job.api.errors import InvalidCredentials, SecretNotFound
from sink_job.engine.secret_files import current_version, read_key

if TYPE_CHECKING:
    from sink_job.api.sections.aws_access import ProxySpec

REJECTED: Final = "the proxy rejects the login: fix the Secret of spec.s3.proxy.credentials (username and password)"
FORBIDDEN: Final = "the proxy does not allow the connection: allow this host there, or fix spec.s3.proxy"
UNTRUSTED: Final = "the certificate of the proxy is not trusted: set its certificate authority in caSecret"
PROXY_LOGIN: Final = 407
"""HTTP status of a proxy that demands a login."""
_TUNNEL: Final = re.compile(r"(?:^|Tunnel connection failed: )([0-9]{3})(?: |$)")
"""The status of the answer to CONNECT, in the message of a library. Hosts, ports and times can have the same digits."""


@dataclass(frozen=True, kw_only=True)
class ProxySettings:
    """The proxy. `credentials_dir`: directory of the mounted Secret; None: no login. `no_proxy`: hosts, domains and
    networks that are reached without it. Contains no secret."""

    url: str
    credentials_dir: Path | None = None
    no_proxy: tuple[str, ...] = ()

    @classmethod
    def of(cls, spec: ProxySpec, directory: Callable[[str, str], Path]) -> ProxySettings:
        """The proxy of a manifest. `directory`: the mount of a Secret; its second argument names the field."""
        return cls(
            url=spec.url.rstrip("/"),
            credentials_dir=None
            if spec.credentials is None
            else directory(spec.credentials.secret, "proxy.credentials"),
            no_proxy=tuple(spec.no_proxy),
        )

    def is_used_for(self, url: str) -> bool:
        """Whether requests to `url` go through the proxy."""
        host = (urlsplit(url).hostname or "").rstrip(".")
        return not any(_matches(host, entry.lower()) for entry in self.no_proxy)

    def login(self) -> tuple[str, str] | None:
        """User and password; None without credentials. Raises SecretNotFound, and InvalidCredentials for characters
        that the libraries cannot send."""
        if self.credentials_dir is None:
            return None
        directory = current_version(self.credentials_dir)
        user, password = (read_key(directory / name, "proxy credentials") for name in ("username", "password"))
        if not user or not password:
            raise SecretNotFound(
                f"proxy credentials: {self.credentials_dir} has no {'username' if not user else 'password'}; the "
                "Secret of spec.s3.proxy.credentials needs the keys username and password"
            )
        if not f"{user}{password}".isascii() or any(unicodedata.category(each) == "Cc" for each in f"{user}{password}"):
            raise InvalidCredentials(
                f"proxy credentials: {self.credentials_dir} contains a control character, or one that is not ASCII"
            )
        return user, password

    def url_with_login(self) -> str:
        """The URL with the login, for botocore. It is a secret."""
        login = self.login()
        if login is None:
            return self.url
        scheme, _, address = self.url.partition("://")
        user, password = (quote(text, safe="") for text in login)
        return f"{scheme}://{user}:{password}@{address}"


def proxies(settings: ProxySettings | None, url: str, ca_file: Path | None) -> dict[str, Any]:
    """botocore's options for requests to `url`; empty: the proxy of the environment. `ca_file`: the authorities of a
    proxy with TLS; None: the default ones."""
    if settings is None:
        return {}
    if not settings.is_used_for(url):
        return {"proxies": {}}
    through: dict[str, Any] = {"proxies": dict.fromkeys(("http", "https"), settings.url_with_login())}
    return through if ca_file is None else {**through, "proxies_config": {"proxy_ca_bundle": str(ca_file)}}


def proxy_failure(text: str) -> tuple[str, bool] | None:
    """The advice for the message of a proxy that has rejected a connection, and whether the login is the reason. None
    for any other failure, which may pass.

    `text`: the message of the library: `… Tunnel connection failed: 407 Proxy Authentication Required` of urllib3, or
    `407 Proxy Authentication Required` of httpx.
    """
    if "certificate verify failed" in text.lower():
        return UNTRUSTED, False
    answer = _TUNNEL.search(text)
    status = 0 if answer is None else int(answer[1])
    if status == PROXY_LOGIN:
        return REJECTED, True
    return (FORBIDDEN, False) if status in (403, 405) else None


def _matches(host: str, entry: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        domain = entry.strip(".")
        return host == domain or host.endswith(f".{domain}")
