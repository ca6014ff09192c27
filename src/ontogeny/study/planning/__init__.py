"""Before a study computes: what its model shows, which cells there are, and what they cost."""
