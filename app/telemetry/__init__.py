"""Logs, traces and counters: what the service says of itself."""
