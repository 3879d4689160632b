"""The section spec.tables: tables over the objects, and their catalogs."""

from __future__ import annotations

import re
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import StrictBool

from sink_job.api.base_model import SpecModel, description
from sink_job.api.enums import CatalogType, OnMissing, OnTableChange, TablePartitioning
from sink_job.api.field_types import Region, TextValidator
from sink_job.api.sections.aws_access import AssumeRoleSpec
from sink_job.api.sections.secret_refs import SecretKey, SecretRef
from sink_job.api.units.quantities import DAY, HOUR, MINUTE, SECOND, Duration

MAX_TABLES: Final = 10
_NAME: Final = r"([A-Za-z0-9_]|\{topic\})+([.]([A-Za-z0-9_]|\{topic\})+)+"
_BRANCH: Final = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_WAREHOUSE: Final = r"[A-Za-z0-9_.:/=@+-]+"


def check_table_name(text: str) -> None:
    """Checks the pattern of the names of tables."""
    if len(text) > 255:
        raise ValueError("is longer than 255 characters")
    if not re.fullmatch(_NAME, text):
        raise ValueError(
            "is not the name of a table: use namespace.name with letters, digits and _, and {topic} for the topic"
        )


def check_catalog_uri(text: str) -> None:
    """Checks the URI of a catalog: without a login."""
    if len(text) > 1024:
        raise ValueError("is longer than 1024 characters")
    try:
        url = urlsplit(text)
        has_login = url.username is not None or url.password is not None
    except ValueError:
        raise ValueError("is not a URI") from None
    if has_login:
        raise ValueError("contains a login, which the manifest must not have")
    if not url.scheme or any(each.isspace() for each in text):
        raise ValueError("is not a URI: use sqlite:////data/catalog.db or https://catalog.example.com")


def check_warehouse(text: str) -> None:
    """Checks the warehouse of a catalog: a location, or a name that a REST catalog knows."""
    if len(text) > 512 or not re.fullmatch(_WAREHOUSE, text):
        raise ValueError("is not a warehouse: use s3://bucket/folder, or the name that the catalog has for it")


def check_branch(text: str) -> None:
    """Checks the name of a branch."""
    if len(text) > 100 or not re.fullmatch(_BRANCH, text):
        raise ValueError("is not the name of a branch: use letters, digits, _, . and -")


TableName = Annotated[str, TextValidator(check_table_name, {"pattern": f"^{_NAME}$", "maxLength": 255})]
CatalogUri = Annotated[str, TextValidator(check_catalog_uri, {"minLength": 1, "maxLength": 1024})]
BranchName = Annotated[str, TextValidator(check_branch, {"pattern": f"^{_BRANCH}$", "maxLength": 100})]
Warehouse = Annotated[str, TextValidator(check_warehouse, {"pattern": f"^{_WAREHOUSE}$", "maxLength": 512})]


class CatalogSpec(SpecModel):
    """A catalog of Apache Iceberg."""

    type: Annotated[CatalogType, description(example="Rest")]
    """Kind of the catalog. Rest: Iceberg's REST protocol. Glue: AWS Glue Data Catalog. Sql: a SQLite database, for one
    machine; the name of the catalog in it is default. Hive: Hive's metastore 2.3.10, or 4.0.1 or later.
    GluePartitions: no table of Iceberg, but the partitions of an existing table in AWS Glue (s3sink ddl --dialect
    glue), for every output format. HivePartitions: the same in Hive's metastore (--dialect hive)."""
    uri: Annotated[CatalogUri | None, description(example="https://catalog.example.com")] = None
    """URI of the catalog: https:// for Rest (http:// needs insecure: true, except on loopback), sqlite:/// and the path
    of the file for Sql, thrift:// for Hive and HivePartitions; these require it.
    For Glue and GluePartitions the endpoint; default: that of the region."""
    region: Annotated[Region | None, description(example="eu-central-1")] = None
    """Region of AWS. Required by Glue and GluePartitions, and only for them."""
    warehouse: Annotated[Warehouse | None, description(example="s3://lake/warehouse")] = None
    """Location of new tables: for Sql and Glue a folder in a bucket, outside of topicsDir, which they require; for Rest
    what the catalog calls its warehouse; for Hive the folder of new databases, by default that of the metastore. A
    database of Glue or Hive with a location in a bucket has its tables there."""
    credentials: Annotated[SecretRef | None, description(example={"secret": "catalog-login"})] = None
    """Secret with token (bearer token), or with clientId and clientSecret (OAuth client credentials), optionally
    tokenUrl and scope, or with username and password; for type Rest. Default of tokenUrl: that of the catalog. Default:
    no login. For Glue: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and optionally AWS_SESSION_TOKEN; default: those of
    spec.s3.credentials, or the credential chain of AWS."""
    assume_role: AssumeRoleSpec | None = None
    """IAM role for requests to AWS Glue, for example of another account; only for Glue and
    GluePartitions. Metadata of Iceberg is read and written with spec.s3."""
    ca_secret: Annotated[SecretKey | None, description(example={"secret": "catalog-ca", "key": "ca.crt"})] = None
    """CA certificates (PEM) to verify the certificate of the catalog and of the token endpoint; for all types but Sql.
    Connections to Hive's metastore have TLS only with it."""
    insecure: StrictBool = False
    """Allows http:// in uri and tokenUrl for another machine; logins are then sent without encryption. For Rest, Glue
    and GluePartitions."""


class TableSpec(SpecModel):
    """A table of Apache Iceberg for each topic. The driver adds published objects beside its rounds; s3sink register
    does it at once. A topic without objects takes the field ids of a table that exists already, and is not read before
    the catalog has answered."""

    catalog: CatalogSpec
    """The catalog of the tables."""
    name: Annotated[TableName, description(example="lake.{topic}")]
    """Name of the tables: namespace.name. {topic} is replaced by the topic in lower case, with _ for characters other
    than letters, digits and _. Required if the sink has several topics."""
    partitioning: TablePartitioning = TablePartitioning.PATH
    """Partitions of the objects. Path: the value of each name=value of the path; a name that is no column of the rows
    becomes a column of text. Hidden: hour or day of the column with the time of the path, which each object must have
    one of, in UTC. None: without partitions. A table keeps its columns of paths: from or to Path, use another name."""
    branch: Annotated[BranchName, description(example="audit")] = "main"
    """Branch of the tables to which objects are added. A branch that does not exist begins at the head of main."""
    every: Annotated[int, Duration(minimum=SECOND, maximum=DAY)] = 5 * MINUTE
    """Minimum time between two registrations of a table. Nothing is registered while nothing is new."""
    history: Annotated[int, Duration(minimum=HOUR)] = 7 * DAY
    """Age from which on snapshots are expired, in the commits that add objects. No file is deleted. Branches and tags
    keep theirs."""
    keep_objects: bool = True
    """The table gets the property gc.enabled=false: Iceberg's clients in Java delete no objects when they expire
    snapshots or drop the table with PURGE. PyIceberg does not respect it. With false they delete objects that the
    table does not refer to any more, for example after a compaction, and the ledger then names objects that do not
    exist."""
    on_missing: OnMissing = OnMissing.STOP
    """What happens when a published object does not exist any more before it is in the table, for example because a
    reader has moved it. Stop: nothing is added, and TableNotRegistered is reported with its key. Skip: it is left out,
    and counted in status.tables[].skippedObjects. Only for tables of Iceberg; not together with onReset or
    onIncompatible: NewTable."""
    on_reset: OnTableChange = OnTableChange.STOP
    """What happens after an offset reset with NewPrefix, whose objects have records that the table has already. Stop:
    nothing is added, and TableNotRegistered is reported. NewTable: the table gets what was published before the reset,
    and the objects after it are in a new table of the same name with _2, then _3, up to _9. Only for tables of Iceberg;
    not together with onMissing: Skip."""
    on_incompatible: OnTableChange = OnTableChange.STOP
    """What happens when columns of an object do not fit the table, for example after a change from int to string. Stop:
    nothing is added, and TableIncompatible is reported. NewTable: that object and all later ones are in a new table of
    the same name with _2, then _3, up to _9. Only for tables of Iceberg; not together with onMissing: Skip."""
