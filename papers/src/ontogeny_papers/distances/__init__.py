"""All concepts of all steps in one plane."""
