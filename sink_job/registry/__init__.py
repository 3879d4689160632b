"""Schema registries: fetches the schemas of records, with their references, subjects and versions.

Runs in the driver alone. Workers read the copies in the ledger (`sink_job.ledger.schemas.schema_store`).
"""
