"""Entrances for programs: a signed webhook and a JSON API."""
