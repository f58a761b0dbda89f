"""Processes that serve one store and are killed at every step; and the proof that nobody's message suffered from it."""
