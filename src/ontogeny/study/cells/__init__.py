"""What a study computes: cells of observables, how they are read, checked and stacked."""
