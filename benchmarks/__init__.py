"""How fast the store and the terminal are, as ratios measured in one run: ``python -m benchmarks``."""
