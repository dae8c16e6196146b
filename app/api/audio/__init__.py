"""Transcripts in one request: OpenAI's endpoints, whisper-asr-webservice's, and where somebody speaks."""
