"""The door: what comes in is checked, redacted and stored before anything else happens."""
