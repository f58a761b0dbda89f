"""Ports: what the core needs from a plugin, one Protocol a module."""
