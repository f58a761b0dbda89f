"""Turns: wait, begin, load, run, store, finish."""
