"""What names and small texts of a manifest may look like, each as an annotation with its own sentence."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema


@dataclasses.dataclass(frozen=True)
class _Text:
    def check(self, text: str) -> None:
        """Raises ValueError with what is wrong and what is allowed."""

    def checked(self, value: Any) -> Any:
        if isinstance(value, str):
            self.check(value)
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.checked, handler(source))


class SecretName(_Text): ...


class SecretDataKey(_Text): ...


class KafkaProperty(_Text): ...


class BootstrapServers(_Text): ...


class TopicName(_Text): ...


class Regex(_Text): ...


class GroupId(_Text): ...


class KafkaProperties(_Text): ...


class Extension(_Text): ...


class FieldPath(_Text): ...


class PathFormat(_Text): ...


class Timezone(_Text): ...


class Locale(_Text): ...


class TopicsDir(_Text): ...


class Bucket(_Text): ...


class Region(_Text): ...


class Endpoint(_Text): ...


class SinkId(_Text): ...


class DnsLabel(_Text): ...


class SparkConf(_Text): ...


@dataclasses.dataclass(frozen=True)
class Delimiter(_Text):
    digits: bool = True


def redacted_properties(properties: Mapping[str, str]) -> dict[str, str]:
    return dict(properties)
