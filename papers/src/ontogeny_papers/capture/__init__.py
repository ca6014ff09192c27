"""What only the papers read from models: logits after contexts, cut attention, embeddings."""
