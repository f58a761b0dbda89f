"""The terminal entrance of Hermes Sessions."""
