"""The CEL rules of `spec.kafka.login`, as `sink_job.api.rules.login_rules` has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from s3sink_operator.crd.cel import CelRule, cel_list, either
from sink_job.api.enums import LoginType
from sink_job.api.rules.login_rules import WITH_CREDENTIALS, WITH_IAM, WITH_TOKENS, WITH_USERNAME, WITHOUT_TLS
from sink_job.api.sections.login_section import AUTHORITY_PROPERTIES, login_properties


def login_rules() -> Iterator[CelRule]:
    """The rules of the section, and of properties that it sets."""
    here = "spec.kafka.login"
    yield CelRule(
        here,
        either(f"!(self.type in {cel_list(WITH_CREDENTIALS)})", "has(self.credentials)"),
        f"{here}.credentials is missing: this type needs it",
    )
    yield CelRule(
        here,
        either(f"!(self.type in {cel_list(WITH_TOKENS)})", "has(self.tokenUrl)"),
        f"{here}.tokenUrl is missing: this type needs it",
    )
    yield _only(here, "username", "!has(self.username)", WITH_USERNAME)
    for name in ("clientId", "tokenUrl", "scope", "tokenCaSecret"):
        yield _only(here, name, f"!has(self.{name})", WITH_TOKENS)
    yield _only(here, "credentials", "!has(self.credentials)", WITH_CREDENTIALS)
    for name in ("assumeRole", "profile"):
        yield _only(here, name, f"!has(self.{name})", WITH_IAM)
    yield CelRule(
        here,
        "!has(self.assumeRole) || !has(self.profile)",
        f"{here}.profile cannot be combined with assumeRole: remove one of them",
    )
    yield _only(here, "insecure", "!self.insecure", WITHOUT_TLS)
    yield CelRule(
        here,
        either("!has(self.caSecret)", "!self.insecure"),
        f"{here}.caSecret has no effect with insecure: true: remove one of them",
    )
    yield from _set_twice()


def _only(here: str, name: str, unset: str, types: Sequence[LoginType]) -> CelRule:
    return CelRule(
        here,
        either(unset, f"self.type in {cel_list(types)}"),
        f"{here}.{name} has no effect with this type, only with {', '.join(types)}: remove it",
    )


def _set_twice() -> Iterator[CelRule]:
    by_names: dict[tuple[str, ...], list[str]] = {}
    for kind in LoginType:
        by_names.setdefault(login_properties(kind), []).append(kind)
    cases = [(names, f"!(self.login.type in {cel_list(types)})") for names, types in by_names.items()]
    cases.append((AUTHORITY_PROPERTIES, "!has(self.login.caSecret)"))
    for names, unless in cases:
        for field, given in (("properties", "name in self.properties"), ("propertySecrets", "")):
            absent = (
                f"!{cel_list(names)}.exists(name, {given})"
                if given
                else f"self.{field}.all(each, !(each.name in {cel_list(names)}))"
            )
            yield CelRule(
                "spec.kafka",
                either("!has(self.login)", unless, f"!has(self.{field})", absent),
                f"spec.kafka.{field} has a property that spec.kafka.login sets, one of {', '.join(names)}: remove it",
            )
