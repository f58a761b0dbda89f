"""An agent for every OpenAI-compatible endpoint."""
