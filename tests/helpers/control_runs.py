"""Small runs whose weights move, to make controls of, and what controls are compared by."""

import torch

from ontogeny import Recorder, Trajectory


def run_of(build, steps=(0, 1, 2, 5), size=0.05):
    """Return models along a random walk with drift from one initialisation."""
    torch.manual_seed(0)
    first = build()
    state = {n: t.detach().clone() for n, t in first.state_dict().items()}
    drift = {n: torch.randn(t.shape) for n, t in state.items()}
    models = {}
    for step in steps:
        models[step] = build().eval()
        models[step].load_state_dict(state)
        for name, tensor in state.items():
            if tensor.is_floating_point():
                change = size * (drift[name] + torch.randn(tensor.shape))
                state[name] = (tensor.double() + change).to(tensor.dtype)
    return models


def record(folder, models, **options):
    recorder = Recorder(folder, every=1, **options)
    assert all(recorder(step, model) for step, model in models.items())
    return Trajectory.from_folder(folder)


def tensors(checkpoint):
    with checkpoint.open() as reader:
        return {name: reader.get(name).clone() for name in reader.names()}


def motions(trajectory):
    """Return ``{tensor: motion from the first checkpoint, (steps - 1, elements) float64}``."""
    first, *rest = map(tensors, trajectory)
    return {
        name: torch.stack(
            [(t[name].double() - first[name].double()).flatten() for t in rest]
        )
        for name in first
        if first[name].is_floating_point()
    }


def largest_gram_error(source, control):
    """Return the largest difference of Gram matrices over steps, by the largest entry of each."""
    expected, found = motions(source), motions(control)
    worst = 0.0
    for name, motion in expected.items():
        gram = motion @ motion.T
        other = found[name] @ found[name].T
        worst = max(
            worst,
            float((gram - other).abs().max() / gram.abs().max().clamp_min(1e-300)),
        )
    return worst


def same(one, other):
    return one.keys() == other.keys() and all(
        torch.equal(one[n], other[n]) for n in one
    )


def digest_of(trajectory):
    """Run in a fresh process: digests of what was computed, and those that follow from sources."""
    from ontogeny.trajectory.weights.digests import digest

    found = {}
    for checkpoint in reversed(list(trajectory)):
        found.update(
            {(checkpoint.step, n): digest(t) for n, t in tensors(checkpoint).items()}
        )
    return found, trajectory.fingerprints()
