"""A study's folder: where things lie in it, what it was begun with, and who is at work in it."""
