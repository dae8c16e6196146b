"""Segments to cues, in steps: timed text, passages, cues, lines, times."""
