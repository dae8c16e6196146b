"""From an upload to a transcript: the pipeline, and what it needs around it."""
