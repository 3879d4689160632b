"""Reads the configurations of connectors from a text, whose form is recognized by its content.

JSON of Kafka Connect's REST API, `.properties`, Strimzi's `KafkaConnector`, Confluent for Kubernetes' `Connector`, and
`aws kafkaconnect describe-connector`. Messages have lines and columns, and never the text, which may be a secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from sink_job.api.errors import InvalidConnector
from sink_job.api.field_errors import in_a_line
from sink_job.migrate.findings import Configuration
from sink_job.migrate.inputs.properties_text import read_properties
from sink_job.migrate.inputs.worker import of_kafka_connect, of_msk_connect

MAX_LENGTH: Final = 64 << 20
_OF_KUBERNETES = re.compile(r"(?m)^\s*[\"']?(apiVersion|kind)[\"']?\s*:")
_YAML_MAPPING = re.compile(r"(?m)^\s*[\"']?(connector\.class|config)[\"']?\s*:(\s|$)")
_STATES: Final = {"paused": "Paused", "stopped": "Stopped"}
_EXPECTED: Final = (
    "expected is the JSON of Kafka Connect's REST API, a .properties file, a KafkaConnector of Strimzi, a Connector of "
    "Confluent for Kubernetes, or the output of aws kafkaconnect describe-connector"
)


def read_configurations(text: str) -> list[Configuration]:
    """The connectors in `text`, at least one. Raises InvalidConnector."""
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise InvalidConnector(f"the input is empty: {_EXPECTED}")
    try:
        found = list(_configurations(text))
    except RecursionError:
        raise InvalidConnector("the input is nested too deeply") from None
    if not found:
        raise InvalidConnector(f"the input has no connector: {_EXPECTED}")
    return found


def _configurations(text: str) -> Iterator[Configuration]:
    start = text.lstrip()[0]
    if start in "{[":
        yield from of_json(read_json(text))
    elif start == "<":
        raise InvalidConnector(f"line 1, column 1: the input is HTML or XML: {_EXPECTED}")
    elif _OF_KUBERNETES.search(text):
        yield from _of_kubernetes(_documents(text))
    elif _YAML_MAPPING.search(text):
        for document in _documents(text):
            yield from of_json(document)
    else:
        settings = read_properties(text)
        if "connector.class" not in settings:
            raise InvalidConnector(f"the input has no connector.class: {_EXPECTED}")
        yield Configuration(settings, settings.get("name") or None)


def _documents(text: str) -> list[Any]:
    from sink_job.migrate.inputs.yaml_text import read_yaml  # JSON and .properties need no YAML

    return read_yaml(text)


def read_json(text: str) -> Any:
    """A document of JSON. Numbers are texts, as Kafka Connect takes them. Raises InvalidConnector."""
    doubled: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        known: dict[str, Any] = {}
        for key, value in items:
            if key in known and not key.startswith("_"):
                doubled.append(key)
            known[key] = value
        return known

    try:
        document = json.loads(text, object_pairs_hook=pairs, parse_int=str, parse_float=str, parse_constant=str)
    except json.JSONDecodeError as error:
        raise InvalidConnector(f"line {error.lineno}, column {error.colno}: invalid JSON: {error.msg}") from None
    if doubled:
        raise InvalidConnector(f"{_place(text, doubled[0])}the key {in_a_line(doubled[0])} is there twice: remove one")
    return document


def _place(text: str, key: str) -> str:
    """Line and column of the second occurrence of a key."""
    found = [each.start() for each in re.finditer(re.escape(json.dumps(key)) + r"\s*:", text)]
    if len(found) < 2:
        return ""
    line = text.count("\n", 0, found[1]) + 1
    return f"line {line}, column {found[1] - text.rfind(chr(10), 0, found[1])}: "


def of_json(document: Any) -> Iterator[Configuration]:
    """The connectors of one document. Raises InvalidConnector."""
    if not isinstance(document, dict):
        what = "an array" if isinstance(document, list) else "a single value"
        raise InvalidConnector(f"line 1, column 1: the input is {what}, not an object: {_EXPECTED}")
    if "kind" in document:
        yield from _of_kubernetes([document])
    elif isinstance(document.get("connectorConfiguration"), dict):
        yield _of_msk(document)
    elif isinstance(document.get("config"), dict):
        name = _text(document.get("name")) or _text(document["config"].get("name"))
        state = _STATES.get((_text(document.get("initial_state")) or "").lower(), "Running")
        yield Configuration(_settings(document["config"]), name, state=state)
    elif "connector.class" in document:
        yield Configuration(_settings(document), _text(document.get("name")))
    elif document and all(isinstance(each, dict) and "info" in each for each in document.values()):
        for each in document.values():
            yield from of_json(each["info"])
    else:
        raise InvalidConnector(f"the input has neither connector.class nor config: {_EXPECTED}")


def _settings(config: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for key, value in config.items():
        if isinstance(value, dict | list):
            what = "an object" if isinstance(value, dict) else "an array"
            raise InvalidConnector(
                f"the value of {in_a_line(key)} is {what}: Kafka Connect takes text, numbers and booleans"
            )
        if value is not None:
            found[key] = ("true" if value else "false") if isinstance(value, bool) else str(value)
    return found


def _text(value: Any) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _of_msk(document: Mapping[str, Any]) -> Configuration:
    state = (_text(document.get("connectorState")) or "").lower()
    remarks = (f"The connector is {state.upper()}.",) if state not in ("", "running") else ()
    return Configuration(
        _settings(document["connectorConfiguration"]),
        _text(document.get("connectorName")),
        managed="MSK Connect",
        remarks=remarks,
        worker=of_msk_connect(document),
    )


def _of_kubernetes(documents: Iterable[Any]) -> Iterator[Configuration]:
    """The connectors in custom resources. A `KafkaConnect` among them is the worker of its connectors."""
    flat = list(_items(documents))
    workers = {
        _metadata(each).get("name"): of_kafka_connect(each) for each in flat if each.get("kind") == "KafkaConnect"
    }
    for document in flat:
        if document.get("kind") not in ("KafkaConnector", "Connector"):
            continue
        metadata, spec = _metadata(document), _mapping(document.get("spec"))
        labels = _mapping(metadata.get("labels"))
        config = _mapping(spec.get("config")) or _mapping(spec.get("configs"))
        settings = {**_settings(config), "connector.class": str(spec.get("class", ""))}
        yield Configuration(
            settings,
            _text(spec.get("name")) or _text(metadata.get("name")),
            _text(metadata.get("namespace")),
            _state(spec, _mapping(document.get("status"))),
            worker=workers.get(labels.get("strimzi.io/cluster"), {}),
        )


def _items(documents: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for document in documents:
        if isinstance(document, dict):
            items = document.get("items")
            yield from _items(items) if document.get("kind") == "List" and isinstance(items, list) else [document]


def _state(spec: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    if str(spec.get("pause", "")).lower() == "true":
        return "Paused"
    state = _text(spec.get("state")) or _text(status.get("connectorState")) or ""
    return _STATES.get(state.lower(), "Running")


def _metadata(document: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(document.get("metadata"))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
