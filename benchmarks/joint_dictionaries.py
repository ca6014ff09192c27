"""Which method finds concepts with known lives, and in how much time: the table of the guide.

    env OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/joint_dictionaries.py
        [methods] [variants] [nulls] [size] [kernel] [runs] [--seeds 3] [--first-seed 900]

Without names of parts, all but `size` run. `size` is 48 checkpoints x 5,000 tokens x 768 features.
Planted lives of 5,000 tokens, 64 features, 10 checkpoints; 128 latents, 4 active a token. Processor
seconds, data not included; memory is the peak of the process (Linux).
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections.abc import Iterable

import numpy as np

from ontogeny import concepts, distances
from ontogeny.concepts.joint import codes as joint_codes
from ontogeny.concepts.joint import lives as joint_lives
from ontogeny.concepts.joint.presence import Decoder, Presence, found_again
from ontogeny.concepts.joint.readout import CheckpointReadout, Moments
from ontogeny.concepts.joint.snapshots import standardised, text_folds
from ontogeny.concepts.joint.whitening import Gathered
from planted_across import planted_runs
from planted_lives import PlantedLives, planted_lives

LATENTS = 128
ACTIVE = 4
READABLE = 0.4
VARIANTS = {
    "base": {},
    "noise 1": {"noise": 1.0},
    "30 % nested": {"nested": 0.3},
    "12 widening": {"widening": 12},
}


def joint(
    run: PlantedLives, method: str, seed: int, **options
) -> concepts.JointDictionary:
    made = concepts.JointDictionary(
        LATENTS, method, ACTIVE, readable=READABLE, random_state=seed, **options
    )
    return made.fit(run.activations, groups=run.texts)


def by_joint(run: PlantedLives, method: str, seed: int):
    found = joint(run, method, seed, reseeds=0)
    return run.recovered(found.codes_, found.lives_.born)


def by_plain_ica(run: PlantedLives, seed: int):
    """ICA alone, whose codes are not read anew from all checkpoints."""
    rounds = joint_codes.REFINED
    joint_codes.REFINED = 0
    try:
        return by_joint(run, "ica", seed)
    finally:
        joint_codes.REFINED = rounds


def by_stacked_sae(run: PlantedLives, seed: int):
    rows = np.arange(len(run.codes))
    steps = [standardised(a, rows)[0] for a in run.activations]
    sae = concepts.SAE(
        LATENTS, variant="batchtopk", k=ACTIVE, epochs=40, random_state=seed
    )
    codes = joint_codes.sparse(sae.fit_transform(np.concatenate(steps, axis=1)), ACTIVE)
    half = text_folds(run.texts, np.random.default_rng(seed))
    decoder = Decoder(codes, run.texts)
    there = Presence.joined(
        [CheckpointReadout(Moments(X, half), decoder).presence for X in steps]
    )
    found = joint_lives.lives(there.strength, there.readable, there.whitened, READABLE)
    return run.recovered(codes, found.born)


def by_tracks(run: PlantedLives, seed: int):
    """ICA at every checkpoint, followed by |cos|: a track's codes are those of its last one."""
    fits = [
        concepts.ICA(n_concepts=run.activations.shape[2], random_state=seed)
        for _ in run.born
    ]
    fits = fits[: len(run.activations)]
    codes = [
        joint_codes.sparse(f.fit_transform(A), ACTIVE)
        for f, A in zip(fits, run.activations, strict=True)
    ]
    found = distances.tracks(
        np.stack([f.components_.T for f in fits]), random_state=seed
    )
    track = found.track.values
    last = {name: (t, c) for t, row in enumerate(track) for c, name in enumerate(row)}
    first = {name: t for t, row in reversed(list(enumerate(track))) for name in row}
    born = [first[n] if first[n] > 0 and last[n][0] > first[n] else -1 for n in last]
    return run.recovered(
        np.stack([codes[t][:, c] for t, c in last.values()], 1), np.array(born)
    )


METHODS = {
    "ICA on the stack": lambda run, seed: by_joint(run, "ica", seed),
    "the same, codes read once": by_plain_ica,
    "crosscoder, BatchTopK": lambda run, seed: by_joint(run, "batchtopk", seed),
    "crosscoder, L1": lambda run, seed: by_joint(run, "l1", seed),
    "SAE on the stack": by_stacked_sae,
    "singular vectors": lambda run, seed: by_joint(run, "svd", seed),
    "ICA per checkpoint, tracks": by_tracks,
}


def measured(name: str, method, seeds, **planted) -> None:
    """Print means, and the worst seed's, of one row."""
    rows = []
    for seed in seeds:
        run = planted_lives(random_state=seed, **planted)
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = method(run, seed)
        rows.append([*found, time.process_time() - begin])
    mean = np.mean(rows, 0)
    low = np.min(rows, 0)
    high = np.max(rows, 0)
    print(
        f"{name:28s} found {mean[0]:.3f} ({low[0]:.3f}-{high[0]:.3f})  recall {mean[1]:.3f} "
        f"({low[1]:.3f}-{high[1]:.3f})  said {mean[2]:.1f}, exact {mean[3]:.3f} ({low[3]:.3f})  "
        f"false: steady {mean[4]:.2f}, widening {mean[5]:.2f} (at most {high[5]:.0f})  "
        f"{mean[6]:.1f} s",
        flush=True,
    )


def nulls(seeds) -> None:
    for name in ("permuted", "jittered"):
        said = []
        naive = []
        for seed in seeds:
            run = planted_lives(random_state=seed)
            X = getattr(run, name)(random_state=seed)
            made = concepts.JointDictionary(
                LATENTS,
                n_active=ACTIVE,
                readable=READABLE,
                reseeds=0,
                random_state=seed,
            ).fit(X, groups=run.texts)
            start = joint_lives.first_half(made.strength_)
            naive.append(joint_lives.was_low(made.strength_, start).sum())
            said.append((made.lives_.born >= 0).sum())
        print(
            f"null, {name:10s} births said {said}, by strength alone {naive}",
            flush=True,
        )


GATHERED = Gathered.__init__


def by_kernel(self, n: int, m: int, count: int, *, stacked: bool = False) -> None:
    GATHERED(self, n, m, count, stacked=stacked)
    self._kernel = np.zeros((n, n), dtype=np.float32, order="F")


def kernel(seeds) -> None:
    """The fit by the stack and the fit by the kernel of tokens."""
    for seed in seeds:
        run = planted_lives(random_state=seed)
        first = joint(run, "ica", seed, reseeds=0)
        Gathered.__init__ = by_kernel
        second = joint(run, "ica", seed, reseeds=0)
        Gathered.__init__ = GATHERED
        again = found_again(first.codes_, second.codes_)[0]
        among = again[first.is_concept_]
        print(
            f"kernel against stack: |corr| median {np.median(again):.4f}; of concepts "
            f"{np.median(among):.4f}, least {among.min():.3f}",
            flush=True,
        )


class Lazy:
    """48 checkpoints, made when they are read, so that only one is in memory."""

    def __init__(self, steps: int, n: int, m: int, features: int) -> None:
        rng = np.random.default_rng(0)
        self.steps = steps
        self.noise = 0.1
        self.codes = rng.exponential(size=(n, features)) * (
            rng.uniform(size=(n, features)) < 0.04
        )
        self.codes = self.codes.astype(np.float32)
        self.shape = (features, m)

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, t: int) -> np.ndarray:
        rng = np.random.default_rng(t + 1)
        W = rng.standard_normal(self.shape, dtype=np.float32)
        W[: t * 2] *= 1.0
        W[t * 2 : 96] *= 0.0  # two features are born at each checkpoint
        noise = rng.standard_normal((len(self.codes), self.shape[1]), dtype=np.float32)
        return self.codes @ W + noise


def size() -> None:
    lazy = Lazy(48, 5000, 768, 200)
    begin = time.process_time()
    for t in range(len(lazy)):
        lazy[t]
    making = time.process_time() - begin
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    begin = time.process_time()
    clock = time.perf_counter()
    texts = np.arange(5000) // 25
    found = concepts.JointDictionary(200).fit(lazy, groups=texts)
    used = time.process_time() - begin
    wall = time.perf_counter() - clock
    reads = 1 + (1 + len(found.fit_steps_)) / 48
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"48 x 5,000 x 768, 200 concepts: {used - reads * making:.1f} s of processor time "
        f"({wall:.1f} s of wall clock with making the data), peak {peak:.2f} GiB of the process "
        f"({before:.2f} before); {(found.lives_.born >= 0).sum()} births of 94 planted",
        flush=True,
    )


def runs(seeds: Iterable[int]) -> None:
    """Three runs of other widths: one fit beside three, and what tokens in other orders share."""
    for seed in seeds:
        for noise in (0.25, 1.0):
            planted = planted_runs(random_state=seed, noise=noise)
            made = concepts.JointDictionary(LATENTS, n_active=ACTIVE)
            begin = time.process_time()
            for A in planted.activations.values():
                made.fit(A, groups=planted.texts)
            apart = time.process_time() - begin
            begin = time.process_time()
            found = made.fit(planted.activations, groups=planted.texts)
            seconds = time.process_time() - begin
            born = np.stack([each.born for each in found.lives_.values()])
            chance = made.false_shared_rate(planted.activations, groups=planted.texts)
            print(
                f"seed {seed}, noise {noise}: {planted.called(found.codes_, found.present_, born)}"
                f", shared by chance {chance:.0f}; {seconds:.1f} s, apart {apart:.1f} s: "
                f"{seconds / apart:.2f} times",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "parts", nargs="*", default=["methods", "variants", "nulls", "kernel", "runs"]
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=900)
    given = parser.parse_args()
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    if "methods" in given.parts:
        for name, method in METHODS.items():
            measured(name, method, seeds)
    if "variants" in given.parts:
        for name, planted in VARIANTS.items():
            measured(f"ICA, {name}", METHODS["ICA on the stack"], seeds, **planted)
    if "nulls" in given.parts:
        nulls(range(given.first_seed, given.first_seed + 10))
    if "kernel" in given.parts:
        kernel(seeds)
    if "runs" in given.parts:
        runs(seeds)
    if "size" in given.parts:
        size()


if __name__ == "__main__":
    main()
