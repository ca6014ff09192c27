"""Joint dictionaries: concepts with one code for the whole run, and a life over checkpoints."""
