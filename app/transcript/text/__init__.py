"""Text, whatever its times: where it may break, its scripts, its direction and who speaks it."""
