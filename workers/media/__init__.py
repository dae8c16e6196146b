"""The media worker: decodes and encodes recordings, finds speech, and embeds voices."""
