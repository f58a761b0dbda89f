"""Slack, by Socket Mode or the Events API: workspaces told apart, threads as sessions, answers posted once."""
