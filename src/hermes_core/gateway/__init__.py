"""What a process does that serves entrances."""
