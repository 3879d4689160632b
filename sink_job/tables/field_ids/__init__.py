"""Field ids that a topic without objects takes from tables that exist (docs/tables.md, ADR 64)."""
