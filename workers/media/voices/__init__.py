"""Embeddings of voices: vectors that are near to each other if the same person speaks."""
