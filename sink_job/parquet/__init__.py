"""Parquet: types, columns, and files row group by row group."""
