"""In which layer a concept is first readable, and whether it moves while the model learns."""
