"""From the workers' results to subtitles: timeline (merge), cues (shape), formats (write)."""
