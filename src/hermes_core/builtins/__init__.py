"""Plugins that the core ships. They use the contract alone, like everybody's."""
