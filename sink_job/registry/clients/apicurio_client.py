"""Requests to Apicurio's own REST API, version 3 (Apicurio 3) or 2 (Apicurio 2, and 3 for old clients).

The Python package of the project (`apicurioregistrysdk`) is not used: ADR 27.
Sources: Apicurio's OpenAPI documents (`openapi.json` of both versions), and the answers of Apicurio 3.3.3.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import certifi
import httpx2
from confluent_kafka.schema_registry.error import SchemaRegistryError

from sink_job.registry.answers import is_text
from sink_job.registry.clients.answer_limits import limit_answers
from sink_job.registry.clients.connection import bearer_token, client_certificate
from sink_job.registry.clients.http_proxy import bypass_proxy, http_proxy
from sink_job.registry.credentials import RegistryCredentials
from sink_job.registry.failures import SCHEMA_NOT_FOUND
from sink_job.registry.settings import RegistrySettings, authorities

DEFAULT_GROUP: Final = "default"
_NOT_FOUND: Final = ("VersionNotFoundException", "ContentNotFoundException", "ArtifactNotFoundException")
_LIMIT: Final = 500


class SchemaKey(NamedTuple):
    """An id of a schema: `kind` is `contentIds` or `globalIds`, as in the paths of the API."""

    kind: str
    number: int


class Artifact(NamedTuple):
    """An artifact of Apicurio: what a subject is to Confluent."""

    group: str
    name: str

    @property
    def subject(self) -> str:
        """`<group>/<artifact>`; the default group is left out."""
        return self.name if self.group == DEFAULT_GROUP else f"{self.group}/{self.name}"


class ArtifactVersion(NamedTuple):
    """A version of an artifact. `language` is its type: AVRO, JSON, PROTOBUF or another one."""

    artifact: Artifact
    global_id: int
    language: str


class ArtifactReference(NamedTuple):
    """A reference of a schema to the version with the text `version` of an artifact."""

    name: str
    artifact: Artifact
    version: str


class ApicurioClient:
    """Sends requests to one URL.

    All methods raise SchemaRegistryError for an answer that is no success (with `SCHEMA_NOT_FOUND` if the id, artifact
    or version does not exist), the errors of httpx2 without an answer, and ValueError, KeyError and TypeError for an
    answer that is not Apicurio's.
    """

    def __init__(self, url: str, http: httpx2.Client) -> None:
        self._url = url
        self._http = http
        self._is_v2 = url.endswith("/v2")

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def text(self, key: SchemaKey) -> str:
        """The text of a schema."""
        return self._get(f"/ids/{key.kind}/{key.number}").content.decode()

    def references(self, key: SchemaKey) -> list[ArtifactReference]:
        """The direct references of a schema."""
        found = self._json(f"/ids/{key.kind}/{key.number}/references")
        return [
            ArtifactReference(_text(each["name"]), _artifact(each, "artifactId"), _text(each["version"]))
            for each in found
        ]

    def versions(self, key: SchemaKey) -> list[ArtifactVersion]:
        """The versions of all artifacts that have this id, at most 500."""
        query = f"{key.kind.removesuffix('s')}={key.number}&limit={_LIMIT}"
        if self._is_v2:
            artifacts = self._json(f"/search/artifacts?{query}")["artifacts"]
            return [version for each in artifacts for version in self._versions_of(_artifact(each, "id"), key)]
        found = self._json(f"/search/versions?{query}")["versions"]
        return [_version(_artifact(each, "artifactId"), each, "artifactType") for each in found]

    def _versions_of(self, artifact: Artifact, key: SchemaKey) -> list[ArtifactVersion]:
        """The versions of an artifact with this id. API 2 finds artifacts only."""
        found = self._json(f"{_path(artifact)}/versions?limit={_LIMIT}")["versions"]
        field = key.kind.removesuffix("s")
        return [_version(artifact, each, "type") for each in found if each[field] == key.number]

    def global_id(self, artifact: Artifact, version: str) -> int:
        """The global id of a version of an artifact."""
        path = f"{_path(artifact)}/versions/{quote(version, safe='')}"
        return int(self._json(f"{path}/meta" if self._is_v2 else path)["globalId"])

    def latest_id(self, artifact: Artifact) -> int:
        """The content id of the newest version of an artifact."""
        path = f"{_path(artifact)}/meta" if self._is_v2 else f"{_path(artifact)}/versions/branch=latest"
        return int(self._json(path)["contentId"])

    def _json(self, path: str) -> Any:
        return self._get(path).json()

    def _get(self, path: str) -> httpx2.Response:
        answer = self._http.get(self._url + path)
        if answer.status_code != httpx2.codes.OK:
            raise SchemaRegistryError(answer.status_code, *_code_and_message(answer))
        if "html" in answer.headers.get("content-type", ""):
            raise ValueError("an HTML page")
        return answer


def apicurio_clients(
    settings: RegistrySettings, credentials: RegistryCredentials | None
) -> Callable[[str], ApicurioClient]:
    """Reads the certificates. What it returns creates the client of a URL.

    Raises SecretNotFound and ConfigurationError, and ssl.SSLError and OSError for files that are not certificates.
    """
    verify = _tls(settings)
    auth = None if credentials is None else _auth(credentials, settings)

    def create(url: str) -> ApicurioClient:
        http = httpx2.Client(verify=verify, auth=auth, proxy=http_proxy(settings, url), timeout=settings.timeout_s)
        bypass_proxy(http, settings, url)
        limit_answers(http, settings.timeout_s)
        return ApicurioClient(url, http)

    return create


def _tls(settings: RegistrySettings) -> ssl.SSLContext:
    ca_file, certificate = authorities(settings), client_certificate(settings)
    context = ssl.create_default_context(cafile=str(ca_file) if ca_file else certifi.where())
    if certificate is not None:
        context.load_cert_chain(certificate.certificate, certificate.key, password="")
    return context


def _auth(credentials: RegistryCredentials, settings: RegistrySettings) -> Any:
    if credentials.username:
        return httpx2.BasicAuth(credentials.username, credentials.password)
    token = bearer_token(credentials, settings)

    def authorized(request: httpx2.Request) -> httpx2.Request:
        request.headers["Authorization"] = f"Bearer {token()}"
        return request

    return authorized


def _code_and_message(answer: httpx2.Response) -> tuple[int, str]:
    """The error code and the message of an answer. A path that does not exist has the name `NotFoundException`."""
    try:
        error = answer.json()
        message = error.get("title") or error.get("message") or answer.reason_phrase
        is_absent = answer.status_code == httpx2.codes.NOT_FOUND and error.get("name") in _NOT_FOUND
    except (ValueError, AttributeError):
        return 0, answer.reason_phrase
    return SCHEMA_NOT_FOUND if is_absent else 0, str(message)


def _artifact(fields: Mapping[str, Any], name: str) -> Artifact:
    return Artifact(_text(fields.get("groupId") or DEFAULT_GROUP), _text(fields[name]))


def _version(artifact: Artifact, fields: Mapping[str, Any], language: str) -> ArtifactVersion:
    return ArtifactVersion(artifact, int(fields["globalId"]), _text(fields[language]))


def _text(value: object) -> str:
    """The value of an answer. Raises TypeError if it is no text."""
    if not is_text(value):
        raise TypeError("a value is not a text")
    return value


def _path(artifact: Artifact) -> str:
    return f"/groups/{quote(artifact.group, safe='')}/artifacts/{quote(artifact.name, safe='')}"
