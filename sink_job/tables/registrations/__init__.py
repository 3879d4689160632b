"""What a registration of one table is given, what it prepares, and what it returns."""
