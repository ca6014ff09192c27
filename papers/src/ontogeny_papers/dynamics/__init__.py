"""Laws fitted to curves, signals compared, and Lipschitz ratios."""
