"""A pool of processes with a fair queue. Knows nothing of Whisper, clips or media."""
