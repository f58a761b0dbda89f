"""Answers on their way: parts, order, retries, rate limits, delivery."""
