"""From a source to a key, and from a key to a lineage."""
