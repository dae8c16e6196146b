"""The transcript of a job: segments, corrections, revisions and speakers."""
