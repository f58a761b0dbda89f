"""Writes of the store, one module per noun: each takes an operation and makes the work that the writer runs.

What needs no database (JSON, previews, legality of single rows) is done while the work is made, in the caller's
thread; the work itself is a few statements, free of clocks and chance, since the writer may run it twice.
"""
