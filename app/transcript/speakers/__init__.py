"""Who speaks: from embeddings of voices to the speakers of a transcript. Pure."""
