"""The backend that computes with torch: a decoder of our own, for GPUs."""
