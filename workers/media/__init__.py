"""The media worker: decoding and speech detection."""
