"""The Whisper worker."""
