"""Which files are the checkpoints of a run, in which order, and why the others are not."""
