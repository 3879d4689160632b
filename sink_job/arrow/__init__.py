"""Columns of Arrow: from and to Python and NumPy, as JSON text, and checks of UTF-8."""
