"""The core of Hermes Sessions."""
