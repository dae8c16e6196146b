"""Corrections of a transcript: what people changed, with the times of all that they left. Pure."""

from app.transcript.corrections.correct import Correction, correct
from app.transcript.corrections.edits import MAX_SEGMENTS, SegmentEdit, unchanged

__all__ = ["MAX_SEGMENTS", "Correction", "SegmentEdit", "correct", "unchanged"]
