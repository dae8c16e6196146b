"""Recordings: received, downloaded, decoded, and cut into clips where nobody speaks."""
