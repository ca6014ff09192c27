"""What an optimiser step does: gradients of a loss, SGD commutators, projections."""
