"""How pods fail, and when a failed sink is tried again."""
