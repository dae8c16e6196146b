"""Jobs: durable transcriptions. They are stored in a database, and a restarted service resumes them."""
