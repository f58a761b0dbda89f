"""Hermes Sessions on one machine: three fake platforms, a gateway that is killed, and a summary that is checked."""
