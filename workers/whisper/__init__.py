"""The Whisper worker: decodes batches of windows."""
