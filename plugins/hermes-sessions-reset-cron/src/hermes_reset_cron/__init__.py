"""Reset policy that ends conversations by calendar rules."""
