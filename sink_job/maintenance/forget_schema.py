"""`s3sink forget-schema`: deletes the ledger's copy of a registry's schema that no object needs any more.

A rebuild of an object decodes its records with the copies in the ledger. So a copy can be deleted only while each
object of its topic is published: the command claims the ledger, which fences a running driver, publishes the closed
objects, and changes nothing if objects of the topic are open. The next driver that resolves the id puts the registry's
schema there.
"""

from __future__ import annotations

import msgspec

from sink_job.api.errors import ConfigurationError
from sink_job.api.topic_partition import TopicPartition
from sink_job.connect.schema import key_schema_id, shown_schema_id
from sink_job.ledger.schemas.schema_store import SchemaStore, schema_key, schemas_root
from sink_job.ledger.session import LedgerAccess, LedgerSession


class ForgottenSchema(msgspec.Struct, frozen=True, rename="camel"):
    """The result of `forget_schema`. `existed`: the ledger had a copy. `published` counts the closed objects that were
    published first."""

    topic: str
    id: str
    key: str
    existed: bool
    published: int


def forget_schema(access: LedgerAccess, topic: str, schema_id: str, *, is_key: bool = False) -> ForgottenSchema:
    """Deletes the copy of the schema `schema_id` of the values of `topic`, or with `is_key` of its keys.

    Raises ConfigurationError if there is no ledger, if the id is not valid, or if objects of the topic are open; and
    the errors of `LedgerSession`.
    """
    name = key_schema_id(schema_id) if is_key else schema_id
    try:
        schema_key("", topic, name)
    except ValueError:
        raise ConfigurationError(f"--id {schema_id} is not a schema id: use a number or a UUID") from None
    if not access.ledger.exists():
        raise ConfigurationError(f"there is no ledger at {access.ledger.url}: the sink has no copies of schemas")
    session = LedgerSession(access)
    with session.ownership_checked():
        published = session.publish()
        found = {TopicPartition.parse(tp): p for tp, p in session.state.partitions.items() if p.open}
        if opened := [str(tp) for tp in sorted(found) if tp.topic == topic]:
            others = " and others" if len(opened) > 3 else ""
            raise ConfigurationError(
                f"objects of {', '.join(opened[:3])}{others} are open and may contain "
                f"records with the schema id {shown_schema_id(name)}. Publish them with `s3sink run SINK.yaml "
                "--publish-open`, or discard them with `s3sink discard-open SINK.yaml`, and repeat the command"
            )
        root = schemas_root(access.ledger.root, session.state.generation)
        existed = SchemaStore(access.ledger.s3, root).forget(topic, name)
        session.clean_up()
    return ForgottenSchema(topic, schema_id, schema_key(root, topic, name), existed, published)
