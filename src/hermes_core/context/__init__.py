"""What the model is sent."""
