"""When a conversation ends by itself: settings in force, the verdict of a policy, the reset, and what is told of it."""
