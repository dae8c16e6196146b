"""Live streams: speech becomes text while it is spoken."""
