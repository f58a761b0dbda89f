"""Claims of Slack routes that were made before the workspace was part of the key."""
