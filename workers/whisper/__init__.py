"""The Whisper worker: transcribes batches of clips."""
