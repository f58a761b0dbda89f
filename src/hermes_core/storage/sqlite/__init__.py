"""The SQLite engine and the store that is built on it; the only room of the core that knows ``apsw``."""
