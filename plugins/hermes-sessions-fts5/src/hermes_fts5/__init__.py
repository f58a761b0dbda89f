"""Full-text search inside the SQLite store: one index over all rows, in any script."""
