"""What a step of an optimiser does: gradients of any loss, and whether two steps commute."""
