"""Webhooks: stored with the change that they announce, and sent until the receiver answers."""
