"""What the metadata of a table and the answers of a catalog must not decide: they are written by others.

PyIceberg imports classes that they name. A driver has credentials, so whoever may edit a table must not choose its
code, and no answer chooses which objects are deleted or where logins are sent.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from pyiceberg.io import FileIO
from pyiceberg.table import locations
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.utils.properties import property_as_bool

from sink_job.api.errors import ConfigurationError, TableIncompatible

_PROVIDER: Final = "write.py-location-provider.impl"
_DELETES: Final = "write.metadata.delete-after-commit.enabled"
_OF_SERVER: Final = frozenset(("prefix", "warehouse", "namespace-separator"))
"""The properties of a REST catalog that its server may set: where its resources are, and no more."""
_SUFFIXES: Final = (".metadata.json", ".metadata.json.gz", ".gz.metadata.json")


def server_properties(own: Mapping[str, str], answered: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of a REST catalog, of its own ones and those that its server has answered, which include them.

    Raises ConfigurationError if the server names another address: the login would be sent there.
    """
    uri = str(answered.get("uri", own["uri"])).rstrip("/")
    if uri != own["uri"].rstrip("/"):
        raise ConfigurationError(
            f"the catalog at {own['uri']} names another address in its configuration, {uri[:200]}: set "
            "spec.tables.catalog.uri to it if you trust it"
        )
    return {**{name: value for name, value in answered.items() if name in _OF_SERVER}, **own}


def old_metadata_files(location: str, before: TableMetadata, after: TableMetadata) -> Collection[str]:
    """The files of metadata that the table at `location` does not list any more, if its properties ask for that. Only
    files in its own folder of metadata: the list is a part of the metadata, and could name any object."""
    if not property_as_bool(after.properties, _DELETES, default=False):
        return ()
    folder = f"{location.rstrip('/')}/metadata/"
    kept = {each.metadata_file for each in after.metadata_log}
    removed = {each.metadata_file for each in before.metadata_log} - kept
    return [each for each in removed if each.startswith(folder) and _is_metadata(each.removeprefix(folder))]


def delete_all(io: FileIO, files: Collection[str]) -> None:
    """Deletes files. Raises the errors of the store."""
    for each in files:
        io.delete(each)


def _is_metadata(name: str) -> bool:
    return "/" not in name and name.endswith(_SUFFIXES)


def _refused(
    location_provider_impl: str, table_location: str, table_properties: dict[str, Any]
) -> locations.LocationProvider | None:
    raise TableIncompatible(
        f"the property {_PROVIDER} of the table names a class ({location_provider_impl[:100]}), which s3sink does not "
        "load: remove it"
    )


locations._import_location_provider = _refused
