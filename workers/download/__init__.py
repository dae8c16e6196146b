"""The download worker: what lies behind a URL."""
