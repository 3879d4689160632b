"""Tables of Apache Iceberg over the objects of a sink: a registration adds published objects to a table, each once.

`plan` decides from the ledger and the table's metadata what to add, or why to stop; `files` reads the footers of
objects; `commit` makes one snapshot; `registration` runs the steps. Objects are neither read nor written. The package
needs the extra `s3sink[tables]` and is imported by commands and by drivers of sinks with `spec.tables` alone.
docs/tables.md has the rules and the proof.
"""
