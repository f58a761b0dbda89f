"""Where conversations are kept: the SQLite store and the in-memory store behind one port."""
