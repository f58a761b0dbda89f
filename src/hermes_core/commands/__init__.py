"""Slash commands, the same on every entrance."""
