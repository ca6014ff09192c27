"""Word geometry along training, and the views of a corpus."""
