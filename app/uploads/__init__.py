"""Resumable uploads: their rows, their files, and the disk space that they reserve. Knows no jobs."""
