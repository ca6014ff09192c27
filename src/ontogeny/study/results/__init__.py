"""The merged result of a study: written whole, checked when it is opened, and asked questions."""
