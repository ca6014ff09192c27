"""What stands on a page of layers, attention heads and weight matrices, by plain functions."""

import numpy as np

from reference.plain import attention, geometry
from reference.plain.noise import Z, band, measured, of_units

LAYER = ("step", "layer")
RANKS = {
    "participation_ratio": geometry.participation_ratio,
    "stable_rank": geometry.stable_rank,
    "effective_rank": geometry.effective_rank,
    "anisotropy": geometry.anisotropy,
}


class PageOfLayers:
    """Numbers of nodes by their names: each a tuple of dimensions and values."""

    def __init__(self, run):
        self.run, self.steps = run, run.steps
        self.vocabulary = run.reads[0][0].log_p.shape[1]

    def over_layers(self, data, measure):
        """Return (T, layers) tables of what `measure` gives by name for a step and a layer."""
        labels = [str(label) for label in data.layer.values]
        cells = [
            [measure(step, label) for label in labels]
            for step in range(len(self.steps))
        ]
        return {
            name: np.array([[cell[name] for cell in row] for row in cells])
            for name in cells[0][0]
        }

    def activation_decay(self, data):
        """Return distances to the last step, as they are and after the best rotation."""

        def measure(step, label):
            here, there = (self.run.activations(at, label) for at in (step, -1))
            norm = np.sqrt((here**2).sum() + (there**2).sum())
            left = ((here @ geometry.rotation(here, there) - there) ** 2).sum(axis=1)
            distance = np.sqrt(left.sum()) * (step < len(self.steps) - 1)
            error = geometry.sum_stderr(left, self.run.unit_of_row)
            return {
                "rotation_removed": distance / norm,
                "rotation_removed_stderr": error / (2 * distance * norm)
                if distance
                else 0.0,
                "distance": np.linalg.norm(here - there),
                "relative": np.linalg.norm(here - there) / norm,
                "norm": np.linalg.norm(here),
            }

        found = self.over_layers(data, measure)
        value, error = found["rotation_removed"], found["rotation_removed_stderr"]
        found["rotation_removed_low"] = np.maximum(value - Z * error, 0)
        found["rotation_removed_high"] = value + Z * error
        return {name: (LAYER, table) for name, table in found.items()}

    def effective_dimensions(self, data):
        """Return how many directions activations use, with jackknife errors."""
        unit = self.run.unit_of_row

        def measure(step, label):
            A = self.run.activations(step, label)
            far = geometry.outliers(A)
            cell = {name: rank(A) for name, rank in RANKS.items()}
            cell |= {
                f"{name}_stderr": geometry.jackknife(rank, unit, A)
                for name, rank in RANKS.items()
            }
            without = geometry.participation_ratio(A[~far])
            return {**cell, "outliers": far.sum(), "without_outliers": without}

        found = self.over_layers(data, measure)
        for name in RANKS:
            noise = found[f"{name}_stderr"]
            found[f"{name}_low"] = found[name] - Z * noise
            found[f"{name}_high"] = found[name] + Z * noise
            found[f"{name}_floor"] = Z * np.sqrt(noise**2 + noise[0] ** 2)
        return {name: (LAYER, table) for name, table in found.items()}

    def similarity(self, data):
        """Return CKA with the last step, with jackknife errors and tokens out of order."""
        unit = self.run.unit_of_row

        def measure(step, label):
            pair = [self.run.activations(at, label) for at in (step, -1)]
            return {
                "similarity": geometry.unbiased_cka(*pair),
                "similarity_stderr": geometry.jackknife(
                    geometry.unbiased_cka, unit, *pair
                ),
                "similarity_shuffled": geometry.shuffled_cka(*pair),
            }

        found = self.over_layers(data, measure)
        value, error = found["similarity"], found["similarity_stderr"]
        draws = found.pop("similarity_shuffled")
        ends = {
            "similarity_low": value - Z * error,
            "similarity_high": value + Z * error,
        }
        dims = (*LAYER, "measure")
        return {
            **{
                name: (dims, table[..., None]) for name, table in (found | ends).items()
            },
            "similarity_shuffled": ((*dims, "draw"), draws[..., None, :]),
            **band("similarity_shuffled", dims, draws[..., None, :]),
        }

    def concepts_svd(self, data):
        """Return the leading directions of activations as they are, and how far they moved.

        A direction has no sign: that of the page is taken.
        """
        count = data.sizes["concept"]
        given = data.dictionary.transpose("step", "layer", "feature", "concept")
        dictionaries = {}

        def measure(step, label):
            values, V = np.linalg.svd(
                self.run.activations(step, label), full_matrices=False
            )[1:]
            W = V[:count].T * np.sqrt(values[:count])
            W = W * np.sign(
                (W * given.isel(step=step).sel(layer=label).values).sum(axis=0)
            )
            dictionaries[step, label] = W
            left = np.sqrt((values[count:] ** 2).sum() / (values**2).sum())
            return {
                "dictionary": W,
                "reconstruction_error": left,
                "norm": np.linalg.norm(W),
            }

        found = self.over_layers(data, measure)
        last = len(self.steps) - 1

        def compare(step, label):
            W, V = dictionaries[step, label], dictionaries[last, label]
            turn = geometry.rotation(
                *(self.run.activations(at, label) for at in (step, last))
            )
            aligned = (W, geometry.matched(W, V), geometry.matched(turn.T @ W, V))
            frobenius = [np.linalg.norm(X - V) for X in aligned]
            procrustes = [
                np.linalg.norm(X @ geometry.rotation(X, V) - V) for X in aligned
            ]
            apart = np.array([frobenius, procrustes])
            norm = np.sqrt((W**2).sum() + (V**2).sum())
            return {"distance_to_reference": apart, "relative_distance": apart / norm}

        found |= self.over_layers(data, compare)
        more = {
            "dictionary": ("feature", "concept"),
            **dict.fromkeys(
                ("distance_to_reference", "relative_distance"),
                ("distance", "alignment"),
            ),
        }
        return {
            name: ((*LAYER, *more.get(name, ())), table)
            for name, table in found.items()
        }

    def attention_entropy(self, data):
        """Return the entropy of heads, of layers and of equal attention."""
        labels = [str(label) for label in data.layer.values]
        texts = [text for text in self.run.texts if text.ordinary]
        size = np.array([len(text.ordinary) for text in texts])
        heads = np.array(
            [
                [
                    [
                        attention.entropies(read.maps[label], text.ordinary)
                        for text, read in zip(texts, reads, strict=True)
                    ]
                    for label in labels
                ]
                for reads in self.run.reads
            ]
        )
        back = max(
            attention.farthest(read.maps[label])
            for reads in self.run.reads
            for read in reads
            for label in labels
        )
        equal = [attention.equal_entropy(text.ordinary, back) for text in texts]
        uniform = np.full(len(self.steps), np.average(equal, weights=size))
        of_text, weights = of_units(heads.mean(axis=-1), size, self.run.unit)
        return measured("layer_entropy", LAYER, of_text, weights) | {
            "layer_entropy_uniform": (("step",), uniform),
            "entropy_uniform": (("step",), uniform),
            "entropy": ((*LAYER, "head"), np.average(heads, axis=2, weights=size)),
        }

    def attention_heads(self, data):
        """Return the scores of heads on repeated sequences, and those of the strongest."""
        whole, equal = self.run.heads()
        repeated, plain = whole[:, :, 0], whole[:, :, 1].mean(axis=-1)
        plain[:, :, 0] = np.nan  # a previous-token head needs no repetition
        dims, first = (*LAYER, "score"), repeated[0].mean(axis=-1).transpose(1, 0, 2)
        strongest = repeated[..., ::2].mean(axis=-1).argmax(axis=-1)
        at = strongest[..., None]
        of_text = np.take_along_axis(repeated, at[..., None], axis=3)[..., 0, :]
        weights = np.arange(of_text.shape[-1]) % 2
        found = measured(
            "head_score", (*dims, "head"), repeated, np.ones(repeated.shape[-1])
        )
        del found["head_score_weights"]
        found |= measured("strongest_score", dims, of_text, weights)
        steps, layers = repeated.shape[:2]
        found["strongest_score_weights"] = (
            (*LAYER, "text"),
            np.broadcast_to(weights, (steps, layers, len(weights))),
        )
        levels = {
            "unrepeated": (np.take_along_axis(plain, at, axis=3)[..., 0], plain),
            "equal": (np.broadcast_to(equal, (steps, layers, 3)),) * 2,
        }
        for name, (best, each) in levels.items():
            found[f"strongest_score_{name}"] = (dims, best)
            found[f"head_score_{name}"] = ((*dims, "head")[: each.ndim], each)
        for name in ("head_score", "strongest_score"):
            draws = first.reshape(3, -1)
            found[f"{name}_first"] = (("score", "initial_head"), draws)
            found |= band(f"{name}_first", ("score",), draws)
        return found | {"strongest_head": (dims, strongest)}

    def weight_change(self, data):
        """Return how far each matrix of the files moved, over how many and in which directions."""
        names = [str(name) for name in data.block.values]
        rows = [
            [geometry.Change(tensor[0], matrix) for matrix in tensor]
            for tensor in map(self._block, names)
        ]

        def table(of):
            return np.array(
                [[of(change) for change in row] for row in rows], dtype=float
            )

        moved = table(lambda change: np.linalg.norm(change.change))
        share = table(lambda change: change.leading_share)
        rank, new = (
            table(lambda change: change.rank),
            table(lambda change: change.intruders()),
        )
        first = [row[0] for row in rows]
        size = np.array([np.linalg.norm(change.first) for change in first])
        chance = np.array([change.leading / len(change.directions) for change in first])
        over, block = ("block", "step"), ("block",)
        return {
            "distance_moved": (over, moved),
            "leading_share": (over, share),
            "effective_rank": (over, rank),
            "intruders": (over, new),
            "size": (block, size),
            "leading_chance": (block, chance),
            "last_change": (block, moved[:, -1] / size),
            "last_rank": (block, rank[:, -1]),
            "last_intruders": (block, new[:, -1]),
            "last_leading": (block, share[:, -1]),
            "last_chance": (block, chance),
            **self._of_kinds(data, names, moved, size, share),
        }

    def _block(self, name):
        """Return (T, ...) a matrix, or the part of queries, keys or values of a fused one.

        Rows of a vocabulary that belong to no token are left out where a family says which it is.
        """
        name, _, part = name.partition("#")
        tensor = self.run.tensors(name)
        if self.run.odd.is_of_family and tensor.shape[1] == self.vocabulary:
            tensor = tensor[:, : len(self.run.tokenizer)]
        return np.split(tensor, 3, axis=2)["qkv".index(part)] if part else tensor

    def _of_kinds(self, data, names, moved, size, share):
        """Return the change of all matrices of a kind: those whose module has the same name."""
        kinds = np.array([_kind_of(name) for name in names])
        change, leading = [], []
        for kind in data["kind"].values.tolist():
            here = kinds == kind
            squares = (moved[here] ** 2).sum(axis=0) / (size[here] ** 2).sum()
            change.append(np.sqrt(squares))
            leading.append(share[here].mean(axis=0))
        over = ("kind", "step")
        return {"relative_change": (over, change), "leading_by_kind": (over, leading)}


def _kind_of(name):
    """Return the last name of a matrix's module, with its part of a fused matrix."""
    path, _, part = name.partition("#")
    kind = [word for word in path.split(".") if not word.isdigit()][-2]
    return f"{kind}#{part}" if part else kind
