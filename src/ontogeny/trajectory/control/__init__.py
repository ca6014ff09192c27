"""Control runs made of a real one: as much motion, at the same steps, that learned nothing.

A control is a trajectory whose checkpoints are computed when they are read, tensor by tensor.
`kinds` holds what is computed, `orthogonal` the maps that turn a motion, `sources` what is read of
the run, and `weights` makes all of it the weights of a checkpoint.
"""
