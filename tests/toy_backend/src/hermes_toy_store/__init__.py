"""A toy storage backend: a file with every operation in order; the store is what they amount to."""
