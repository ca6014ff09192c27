"""Whether the words of a concept belong together: do they stand in the same contexts."""
