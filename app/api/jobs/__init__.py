"""Jobs: submission, state, events, results, links, archives, sound, and resumable uploads."""
