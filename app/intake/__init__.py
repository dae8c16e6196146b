"""From bytes to a recording on disk."""
