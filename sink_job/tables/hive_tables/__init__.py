"""Tables of Hive's kind, in AWS Glue or Hive's metastore: a directory `name=value` of published objects is added as a
partition before the position moves. Adding is idempotent, so a position may be repeated."""
