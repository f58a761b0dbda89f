"""An agent that answers in capitals."""
