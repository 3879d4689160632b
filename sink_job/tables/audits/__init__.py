"""Parts of the audit of a table: an index of its files, and the rows of files that others have written."""
