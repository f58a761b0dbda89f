"""Three platforms, fifty people, a gateway that is killed again and again; see ``python -m soak_harness --help``."""
