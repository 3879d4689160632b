"""What the ledger keeps of schemas: copies of a registry's, the schemas of objects, and field ids."""
