"""Transcripts in JSON: of whisperfleet, OpenAI, openai-whisper, faster-whisper and whisperX. Pure."""

from app.transcript.reading.transcripts import Reading, read_transcript

__all__ = ["Reading", "read_transcript"]
