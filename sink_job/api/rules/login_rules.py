"""Rules for `spec.kafka.login`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sink_job.api.enums import LoginType
from sink_job.api.field_errors import FieldError, Path, shown
from sink_job.api.field_types import is_loopback

if TYPE_CHECKING:
    from sink_job.api.sections.login_section import LoginSpec
    from sink_job.api.spec import Spec

_KAFKA: Final[Path] = ("spec", "kafka")
_LOGIN: Final[Path] = (*_KAFKA, "login")
_TYPE: Final[Path] = (*_LOGIN, "type")

WITH_USERNAME: Final = (LoginType.SCRAM_512, LoginType.SCRAM_256, LoginType.PLAIN)
WITH_TOKENS: Final = (LoginType.OAUTH,)
WITH_IAM: Final = (LoginType.MSK_IAM,)
WITH_CREDENTIALS: Final = (*WITH_USERNAME, LoginType.CERTIFICATE, LoginType.OAUTH)
WITHOUT_TLS: Final = (*WITH_USERNAME, LoginType.OAUTH)
"""The types of a login that do not need TLS."""


def check_login(spec: Spec) -> Iterator[FieldError]:
    """The errors of the section and of what depends on it."""
    login = spec.kafka.login
    if login is None:
        return
    yield from _fields_of_types(login)
    if login.ca_secret is not None and login.insecure:
        yield FieldError(
            (*_LOGIN, "caSecret"), "has no effect with insecure: true: remove one of them", ((*_LOGIN, "insecure"),)
        )
    yield from _token_url(login)
    yield from _role(login)
    yield from _set_twice(spec, login)


def _fields_of_types(login: LoginSpec) -> Iterator[FieldError]:
    kind, here = login.type, (*_LOGIN, "credentials")
    if login.credentials is None and kind in WITH_CREDENTIALS:
        yield FieldError(here, f"is missing: the type {kind} needs it", (here, _TYPE))
    for name, is_set, types in (
        ("username", login.username is not None, WITH_USERNAME),
        ("clientId", login.client_id is not None, WITH_TOKENS),
        ("tokenUrl", login.token_url is not None, WITH_TOKENS),
        ("scope", login.scope is not None, WITH_TOKENS),
        ("tokenCaSecret", login.token_ca_secret is not None, WITH_TOKENS),
        ("credentials", login.credentials is not None, WITH_CREDENTIALS),
        ("assumeRole", login.assume_role is not None, WITH_IAM),
        ("profile", login.profile is not None, WITH_IAM),
        ("insecure", login.insecure, WITHOUT_TLS),
    ):
        if is_set and kind not in types:
            message = f"has no effect with the type {kind}, only with {', '.join(types)}: remove it"
            yield FieldError((*_LOGIN, name), message, (_TYPE,))


def _token_url(login: LoginSpec) -> Iterator[FieldError]:
    url, here = login.token_url, (*_LOGIN, "tokenUrl")
    if url is None:
        if login.type in WITH_TOKENS:
            yield FieldError(here, f"is missing: the type {login.type} needs it", (here, _TYPE))
    elif url.startswith("http://"):
        if not login.insecure and not is_loopback(url):
            message = f"{shown(here, url)} is not encrypted: use https://, or set spec.kafka.login.insecure: true"
            yield FieldError(here, message, ((*_LOGIN, "insecure"),))
        if login.token_ca_secret is not None:
            message = "has no effect: spec.kafka.login.tokenUrl is not encrypted; remove it"
            yield FieldError((*_LOGIN, "tokenCaSecret"), message, (here,))


def _role(login: LoginSpec) -> Iterator[FieldError]:
    if login.assume_role is not None and login.profile is not None:
        message = "cannot be combined with assumeRole: set role_arn in the profile, or remove one of them"
        yield FieldError((*_LOGIN, "profile"), message, ((*_LOGIN, "assumeRole"),))


def _set_twice(spec: Spec, login: LoginSpec) -> Iterator[FieldError]:
    """A property that the login sets must not be set beside it: one of both would have no effect."""
    message = f"is set by spec.kafka.login, of type {login.type}: remove it here, or use properties instead of login"
    of_login = set(login.properties())
    for name in spec.kafka.properties:
        if name in of_login:
            yield FieldError((*_KAFKA, "properties", name), message, (_LOGIN,))
    for at, secret in enumerate(spec.kafka.property_secrets):
        if secret.name in of_login:
            yield FieldError((*_KAFKA, "propertySecrets", at, "name"), f"{secret.name} {message}", (_LOGIN,))
