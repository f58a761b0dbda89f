"""Care of the store: who holds what, what is wrong, what can be put right, and copies."""
