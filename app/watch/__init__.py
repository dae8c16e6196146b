"""`whisperfleet watch`: subtitles for the recordings in folders, now and as they come."""
