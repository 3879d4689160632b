"""The user's Kafka properties, once, for the reader and the admin client alike."""

from collections.abc import Iterable, Mapping
from pathlib import Path


class KafkaProperties:
    """Connection and security properties of one cluster, without what Spark or the sink own. `repr` shows names only."""

    @classmethod
    def of(
        cls,
        *,
        bootstrap_servers: str,
        properties: Mapping[str, str],
        property_files: Iterable[tuple[str, Path]] = (),
        isolation_level: str = "read_committed",
    ) -> "KafkaProperties":
        """`property_files` are (property, file of a mounted secret): the file's text, less a final newline, is the value.

        Raises ConfigurationError for a file that is missing, naming property and file.
        """
        raise NotImplementedError
