"""From a file to clips: uploads, the media children, speech spans, the clip plan."""
