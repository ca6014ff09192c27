"""All concepts of all steps: tracks through training, and their plane."""
