"""From the configuration of a Kafka Connect S3 sink to an S3Sink manifest (`s3sink convert`).

`inputs` reads configurations, and the settings that a connector leaves to its worker.
`conversion` is pure: a configuration and a worker become the lines of a manifest and findings. `table` has a row for
every key of the connector; the tables of docs/migrating.md are made of it (`reference`).

The package imports neither the models of the manifest nor pydantic: a conversion takes a fifth of a second. Its tests
check that each manifest is valid.
"""
