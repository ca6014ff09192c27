"""One recipe for each figure and table of the papers."""
