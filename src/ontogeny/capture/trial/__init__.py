"""Whether what a model returns can be believed, tried before its numbers are."""
