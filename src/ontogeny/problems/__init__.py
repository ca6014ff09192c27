"""What failed in a study, from its merged result: ``result.problems()``."""
