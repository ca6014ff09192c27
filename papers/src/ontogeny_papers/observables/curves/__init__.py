"""Laws and common signals of other nodes' curves."""
