"""The download worker: finds and downloads the recording behind a URL."""
