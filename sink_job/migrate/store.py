"""The bucket of a connector, and the keys of its objects."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from sink_job.api.field_types import (
    check_bucket,
    check_delimiter,
    check_endpoint,
    check_file_delimiter,
    check_region,
    check_topics_dir,
    is_loopback,
)
from sink_job.api.units.quantities import GI, MI, format_size
from sink_job.migrate.converters import without_login
from sink_job.migrate.draft import BY_HAND, Draft
from sink_job.migrate.secret_plan import SecretPlan
from sink_job.migrate.store_access import convert_access, convert_attributes, convert_encryption, convert_proxy
from sink_job.migrate.values import parse_boolean, parse_number

_GOOGLE: Final = re.compile(r"(^|\.)storage\.googleapis\.com$|(^|\.)storage\.cloud\.google\.com$")


def convert_store(draft: Draft, plan: SecretPlan) -> None:
    """Sets the fields of `s3`."""
    _bucket(draft)
    _region(draft)
    _endpoint(draft)
    convert_access(draft, plan)
    convert_proxy(draft, plan)
    convert_encryption(draft, plan)
    convert_attributes(draft)
    _keys(draft)


def _checked(check: Callable[[str], None]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        check(text)
        return text

    return parse


def _bucket(draft: Draft) -> None:
    key = "s3.bucket.name"
    if not draft.text(key):
        draft.missing(key, "the connector needs it", "write s3.bucket")
        value = None
    else:
        value = draft.parsed(key, _checked(check_bucket))
    draft.put("s3.bucket", value or BY_HAND, key if value else f"{key}: write the right one")


def _region(draft: Draft) -> None:
    key = "s3.region"
    if not draft.text(key):
        draft.put("s3.region", "us-west-2", f"{key}: the connector's default")
        return
    value = draft.parsed(key, _checked(check_region))
    if value is not None:
        draft.put("s3.region", value, key)


def _endpoint(draft: Draft) -> None:
    key, style = "store.url", "s3.path.style.access.enabled"
    url, path_style = draft.text(key), draft.parsed(style, parse_boolean)
    endpoint = _plain_endpoint(draft, url) if url else None
    if endpoint is not None:
        if _GOOGLE.search(urlsplit(endpoint).hostname or ""):
            effect = "Google Cloud Storage lacks S3's conditional writes, without which the sink does not start"
            draft.different(key, effect, "use another store (docs/stores.md)")
        draft.put("s3.endpoint", endpoint, key)
        if endpoint.startswith("http://") and not is_loopback(endpoint):
            draft.put("s3.insecure", True, f"{key} is not encrypted; prefer https://")
    wan = "s3.wan.mode"
    if draft.parsed(wan, parse_boolean):
        if endpoint is None and not path_style:
            draft.put("s3.accelerate", True, wan)
        else:
            draft.different(wan, f"has no effect with {key} or {style}", "remove one of them and write s3.accelerate")
    if path_style is not None:
        draft.put("s3.pathStyle", path_style, style)
    elif endpoint is not None:
        draft.put("s3.pathStyle", True, f"{style}: the connector's default")


def _plain_endpoint(draft: Draft, url: str) -> str | None:
    key = "store.url"
    plain, has_login = without_login(url)
    if has_login:
        draft.different(key, "has a login, which is left out", "use aws.access.key.id and aws.secret.access.key")
    parts = urlsplit(plain) if plain.startswith(("http://", "https://")) else None
    if parts is not None and (parts.path not in ("", "/") or parts.query or parts.fragment):
        draft.different(key, "its path is left out", "a store has no path; check s3.endpoint and s3.bucket")
        plain = f"{parts.scheme}://{parts.netloc}"
    try:
        check_endpoint(plain)
    except ValueError as error:
        if not has_login:
            draft.different(key, f"{error}; it is left out", "write s3.endpoint")
        return None
    return plain


def _keys(draft: Draft) -> None:
    _topics_dir(draft)
    _delimiters(draft)
    key = "filename.offset.zero.pad.width"
    width = draft.parsed(key, parse_number)
    if width is not None:
        if 0 <= width <= 64:
            draft.put("s3.offsetPadWidth", width, key)
        else:
            draft.impossible(key, "the number of digits is 0 to 64 here")
    key = "s3.part.size"
    size = draft.parsed(key, parse_number)
    if size is not None:
        if not 5 * MI <= size <= 2 * GI:
            draft.different(key, "a part has 5 MiB to 2 GiB; the default is used", "correct s3.partSize")
        else:
            draft.put("s3.partSize", _size(size), key)


def _size(size: int) -> Any:
    return format_size(size) if size % MI == 0 else size


def _topics_dir(draft: Draft) -> None:
    key = "topics.dir"
    value = draft.text(key)
    if value is None:
        return
    try:
        check_topics_dir(value)
    except ValueError as error:
        stripped = "/".join(each for each in value.split("/") if each not in ("", ".", ".."))
        try:
            check_topics_dir(stripped)
        except ValueError:
            draft.impossible(key, str(error))
            return
        draft.different(
            key, f"{error}; {stripped or 'none'} is written, so keys differ", "move the objects, or keep both"
        )
        value = stripped
    draft.put("s3.topicsDir", value, key)


def _delimiters(draft: Draft) -> None:
    directory = _delimiter(draft, "directory.delim", "s3.directoryDelimiter", check_delimiter) or "/"
    file = _delimiter(draft, "file.delim", "s3.fileDelimiter", check_file_delimiter) or "+"
    if directory in file or file in directory:
        draft.impossible("file.delim", "one delimiter contains the other: keys would be ambiguous")
    if directory != "/":
        topics_dir = draft.fields.get("s3.topicsDir")
        text = "topics" if topics_dir is None else str(topics_dir.value)
        if text.startswith(directory) or text.endswith(directory):
            draft.impossible("topics.dir", "starts or ends with directory.delim")


def _delimiter(draft: Draft, key: str, path: str, check: Callable[[str], None]) -> str | None:
    value = draft.text(key)
    if value is None:
        return None
    try:
        check(value)
    except ValueError as error:
        draft.impossible(key, str(error))
        return None
    draft.put(path, value, key)
    return value
