"""Wyoming, the protocol by which Home Assistant has speech transcribed."""
