"""The access of a connector to S3: credentials, role and proxy; and the attributes of its objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from sink_job.api.aws_types import (
    OFFSET_TAGS,
    CannedAcl,
    EncryptionType,
    TagErrors,
    check_external_id,
    check_kms_key,
    check_proxy_url,
    check_role_arn,
    check_session_name,
    check_tag_key,
    check_tag_value,
)
from sink_job.api.field_types import is_loopback
from sink_job.migrate.draft import Draft
from sink_job.migrate.secret_plan import SecretPlan
from sink_job.migrate.values import parse_boolean, parse_choice, parse_list, simple_name

_ID, _SECRET = "aws.access.key.id", "aws.secret.access.key"
_KEYS: Final = {"AWS_ACCESS_KEY_ID": _ID, "AWS_SECRET_ACCESS_KEY": _SECRET}
_PROVIDER: Final = "s3.credentials.provider.class"
_DEFAULT_CHAIN: Final = (
    "DefaultAWSCredentialsProviderChain",
    "DefaultCredentialsProvider",
    "EnvironmentVariableCredentialsProvider",
    "WebIdentityTokenCredentialsProvider",
    "WebIdentityTokenFileCredentialsProvider",
    "InstanceProfileCredentialsProvider",
    "EC2ContainerCredentialsProviderWrapper",
    "ContainerCredentialsProvider",
    "ProfileCredentialsProvider",
    "SystemPropertiesCredentialsProvider",
    "SystemPropertyCredentialsProvider",
)
_ENCRYPTIONS: Final = {each.s3_name.lower(): each.value for each in EncryptionType if each.s3_name is not None}
_ACLS: Final = {acl.s3_name: acl.value for acl in CannedAcl}
_TAG_ERRORS: Final = {each.value.lower(): each.value for each in TagErrors}
_MAX_TAGS: Final = 7
"""S3's maximum for an object, without the three with its offsets."""
_PROXY_URL: Final = "s3.proxy.url"
_PROXY_LOGIN: Final = {"username": "s3.proxy.user", "password": "s3.proxy.password"}
_ROLE_PROVIDER: Final = "AwsAssumeRoleCredentialsProvider"
_STS: Final = "s3.credentials.provider.sts."
_ROLE_KEYS: Final = {
    "arn": ("role.arn", check_role_arn),
    "externalId": ("role.external.id", check_external_id),
    "sessionName": ("role.session.name", check_session_name),
}
"""Fields of `s3.assumeRole`: the key without its prefix, and its check."""


def convert_access(draft: Draft, plan: SecretPlan) -> None:
    """Sets the fields of `s3` for credentials, and for the role that is assumed with them."""
    values = {name: draft.text(key) or "" for name, key in _KEYS.items()}
    if not all(values.values()):
        for key in _KEYS.values():
            if key in draft.settings:
                draft.left_out(key, "has no effect without the other one of the two keys")
        _provider(draft)
        return
    existing = {name: plan.existing(value) for name, value in values.items()}
    secrets = {each.secret for each in existing.values() if each is not None}
    if len(secrets) == 1 and all(each is not None and each.key == name for name, each in existing.items()):
        secret = secrets.pop()
    else:
        secret = plan.create("s3", {name: _origin(plan, key, values[name]) for name, key in _KEYS.items()})
    draft.put("s3.credentials", {"secret": secret}, f"{_ID}, {_SECRET}")
    if _assumes_role(draft):
        _role(draft)
        return
    for key in draft.settings:
        if key.startswith("s3.credentials.provider."):
            draft.left_out(key, f"has no effect with {_ID} and {_SECRET}")


def _origin(plan: SecretPlan, key: str, value: str) -> str:
    existing = plan.existing(value)
    return f"the value of {key}" + (f", key {existing.key} of the Secret {existing.secret}" if existing else "")


def _provider(draft: Draft) -> None:
    value = draft.text(_PROVIDER)
    if not value:
        return
    if simple_name(value) in _DEFAULT_CHAIN:
        draft.left_out(_PROVIDER, "AWS's default chain has it: environment, web identity, profile, instance role")
    elif _assumes_role(draft):
        _role(draft)
    else:
        draft.different(_PROVIDER, "a provider of one's own is not used", "use s3.credentials or the default chain")


def convert_proxy(draft: Draft, plan: SecretPlan) -> None:
    """Sets `s3.proxy`."""
    url = draft.text(_PROXY_URL)
    login = {name: draft.text(key) or "" for name, key in _PROXY_LOGIN.items()}
    address = draft.parsed(_PROXY_URL, _proxy_address) if url else None
    if address is None:
        for key in _PROXY_LOGIN.values():
            if key in draft.settings:
                without = f"is left out with {_PROXY_URL}" if url else f"has no effect without {_PROXY_URL}"
                draft.left_out(key, without)
        return
    fields: dict[str, Any] = {"url": address}
    if all(login.values()):
        secret = plan.create("proxy", {name: _origin(plan, key, login[name]) for name, key in _PROXY_LOGIN.items()})
        fields["credentials"] = {"secret": secret}
    else:
        for key in _PROXY_LOGIN.values():
            if key in draft.settings:
                draft.left_out(key, "has no effect without the other one of user and password")
    draft.put("s3.proxy", fields, _PROXY_URL)
    draft.to_do("The proxy may be the store itself, such as LocalStack", "then write s3.endpoint instead")


def convert_encryption(draft: Draft, plan: SecretPlan) -> None:
    """Sets `s3.encryption`."""
    kind, key = "s3.ssea.name", "s3.sse.kms.key.id"
    found = draft.parsed(kind, lambda text: parse_choice(text, _ENCRYPTIONS)) if draft.text(kind) else None
    kms_key = draft.parsed(key, _checked(check_kms_key)) if draft.text(key) else None
    if kms_key is not None and found != EncryptionType.KMS:
        draft.left_out(key, "has no effect without s3.ssea.name=aws:kms")
        kms_key = None
    own, customer_key = "s3.sse.customer.key", draft.text("s3.sse.customer.key")
    if customer_key and found == EncryptionType.AES256:
        endpoint = draft.fields.get("s3.endpoint")
        if endpoint is not None and str(endpoint.value).startswith("http://") and not is_loopback(str(endpoint.value)):
            draft.impossible(own, "needs a store with TLS: each request contains the key", "use https:// in store.url")
            return
        secret = plan.create("encryption", {"customerKey": _origin(plan, own, customer_key)})
        fields = {"type": EncryptionType.CUSTOMER.value, "customerKey": {"secret": secret, "key": "customerKey"}}
        draft.put("s3.encryption", fields, f"{kind}, {own}")
        return
    if customer_key:
        draft.left_out(own, "has no effect without s3.ssea.name=AES256")
    if found is not None:
        draft.put("s3.encryption", {"type": found} | ({} if kms_key is None else {"kmsKey": kms_key}), kind)


def convert_attributes(draft: Draft) -> None:
    """Sets `s3.acl`, `s3.tags`, `s3.offsetTags` and `s3.onTagError`."""
    key = "s3.acl.canned"
    acl = draft.parsed(key, lambda text: parse_choice(text, _ACLS)) if draft.text(key) else None
    if acl is not None:
        draft.put("s3.acl", acl, key)
    switch, pairs, errors = (
        "s3.object.tagging",
        "s3.object.tagging.key.value.pairs",
        "s3.object.behavior.on.tagging.error",
    )
    if not draft.parsed(switch, parse_boolean):
        for each in (pairs, errors):
            if draft.text(each):
                draft.left_out(each, f"has no effect without {switch}=true")
        return
    draft.put("s3.offsetTags", True, switch)
    on_error = draft.parsed(errors, lambda text: parse_choice(text, _TAG_ERRORS)) if draft.text(errors) else None
    if on_error is not None and on_error != TagErrors.IGNORE:
        draft.put("s3.onTagError", on_error, errors)
    tags = draft.parsed(pairs, _tags) if draft.text(pairs) else None
    if tags:
        draft.put("s3.tags", tags, pairs)


def _tags(text: str) -> dict[str, str]:
    """The tags of `key:value,key:value`. Raises ValueError."""
    tags = {key.strip(): value.strip() for key, _, value in (each.partition(":") for each in parse_list(text))}
    for key, value in tags.items():
        check_tag_key(key)
        check_tag_value(value)
        if key in OFFSET_TAGS:
            raise ValueError(f"has the tag {key}, which is one of s3.object.tagging")
    if len(tags) > _MAX_TAGS:
        raise ValueError(f"has more than {_MAX_TAGS} tags")
    return tags


def _proxy_address(text: str) -> str:
    """The URL with the port of its scheme, which the connector does not need. Raises ValueError."""
    parts = urlsplit(text)
    if parts.scheme in ("http", "https") and parts.hostname and parts.port is None and parts.path in ("", "/"):
        text = f"{text.rstrip('/')}:{443 if parts.scheme == 'https' else 80}"
    check_proxy_url(text)
    return text


def _assumes_role(draft: Draft) -> bool:
    return simple_name(draft.text(_PROVIDER) or "") == _ROLE_PROVIDER


def _role(draft: Draft) -> None:
    """The role of the connector's provider, which assumes it with the keys, or with the default chain."""
    fields = {}
    for name, (key, check) in _ROLE_KEYS.items():
        value = draft.parsed(f"{_STS}{key}", _checked(check)) if draft.text(f"{_STS}{key}") else None
        if value is not None:
            fields[name] = value
    if "arn" in fields:
        draft.put("s3.assumeRole", fields, f"{_STS}*")
    else:
        draft.different(_PROVIDER, "there is no valid role to assume", "write s3.assumeRole")
    if f"{_STS}region" in draft.settings:
        draft.left_out(f"{_STS}region", "the role is assumed in s3.region")


def _checked(check: Callable[[str], None]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        check(text)
        return text

    return parse
