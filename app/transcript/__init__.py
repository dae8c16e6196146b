"""From the workers' results to subtitles: timeline (merge), cues (shape), rendering and formats (write)."""
