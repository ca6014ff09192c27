"""Settings of every test: what Hypothesis may do on a machine that is busy with something else."""

from hypothesis import settings

# A deadline measures the machine. Everything else stays as Hypothesis has it, which draws the same
# examples each time where the variable CI is set.
settings.register_profile("without-deadline", settings(), deadline=None)
settings.load_profile("without-deadline")
