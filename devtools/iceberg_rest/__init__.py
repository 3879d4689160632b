"""Apache Iceberg's own REST server for tests: a catalog that is not PyIceberg's."""
