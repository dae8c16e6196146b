"""Running jobs: which, in which order, and what they have done so far."""
