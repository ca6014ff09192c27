"""What the page shows first: sentences, a few numbers, and the loss over life lines of concepts.

`screen` puts it together from `landmarks` of the loss and `numbers`; `payload` is what its scripts
read.
"""
