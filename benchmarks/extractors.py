"""Extractors against scikit-learn and Overcomplete, on one core, in one run.

    OMP_NUM_THREADS=1 taskset -c 1 python benchmarks/extractors.py [--activations FILE] [ROW ...]

Times are CPU seconds of this process, medians over `--repeats` with ours and theirs in turn.
Overcomplete is optional: its rows are skipped where it is not installed. `--activations` takes the
file that ``extractors_data.py`` writes; without it only the synthetic matrix is used.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import sys
import time
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.cluster
import sklearn.decomposition as sk
import torch
from threadpoolctl import threadpool_limits

from ontogeny import concepts

R = 100


def synthetic() -> np.ndarray:
    """5,000 x 768: rank 100 plus noise."""
    rng = np.random.default_rng(0)
    low = rng.standard_normal((5000, R)) @ rng.standard_normal((R, 768)) / R**0.5
    return (low + 0.27 * rng.standard_normal(low.shape)).astype(np.float32)


def cpu(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def relative(A: np.ndarray, fitted: np.ndarray) -> float:
    return float(np.linalg.norm(A - fitted) / np.linalg.norm(A))


def overcomplete(part: str) -> Any:
    """Load a subpackage of Overcomplete as it is, without its package's image imports."""
    if "overcomplete" not in sys.modules:
        spec = importlib.util.find_spec("overcomplete")
        if spec is None or not spec.submodule_search_locations:
            return None
        package = types.ModuleType("overcomplete")
        package.__path__ = list(spec.submodule_search_locations)
        sys.modules["overcomplete"] = package
    return importlib.import_module(f"overcomplete.{part}")


# -- one function a row: our call and theirs, each gives (error or objective) ---------------------


def fit(name: str, A: np.ndarray, **options: Any) -> Any:
    est = concepts.make(name, R, random_state=0, **options)
    est.fit_transform(A)
    return est


def row_nmf(A: np.ndarray) -> dict[str, Any]:
    P = np.maximum(A, 0)

    def theirs() -> float:
        est = sk.NMF(R, random_state=0).fit(P)
        return float(est.reconstruction_err_ / np.linalg.norm(P))

    calls: dict[str, Any] = {"ours": lambda: fit("nmf", P).relative_error_}
    for count in (30, 60, 90):
        calls[f"ours, {count} iterations"] = lambda count=count: (
            fit("nmf", P, max_iter=count).relative_error_
        )
    return {**calls, "scikit-learn NMF (cd)": theirs}


def row_semi_nmf(A: np.ndarray) -> dict[str, Any]:
    calls: dict[str, Any] = {"ours": lambda: fit("semi-nmf", A).relative_error_}
    if oc := overcomplete("optimization"):

        def theirs() -> float:
            model = oc.SemiNMF(R, max_iter=500, tol=0, verbose=False)
            Z, D = model.fit(torch.tensor(A))
            return relative(A, (Z @ D).numpy())

        calls["Overcomplete SemiNMF (mu, 500)"] = theirs
    for r in (R, R - 1):
        est = concepts.make("svd", r).fit(A)
        calls[f"bound: SVD of rank {r}"] = lambda est=est: est.relative_error_
    return calls


def row_convex_nmf(A: np.ndarray) -> dict[str, Any]:
    def iterations(variant: str, count: int) -> Callable[[], float]:
        return lambda: (
            fit("convex-nmf", A, variant=variant, max_iter=count).relative_error_
        )

    calls: dict[str, Any] = {
        "ours": lambda: fit("convex-nmf", A).relative_error_,
        "ours, the multiplicative rule, 1 iteration": iterations("multiplicative", 1),
        "ours, the multiplicative rule, 6 iterations": iterations("multiplicative", 6),
        "ours, accelerated, 10 iterations": iterations("accelerated", 10),
        "ours, accelerated, 20 iterations": iterations("accelerated", 20),
    }
    for count in (1, 3):
        calls |= peer_convex_nmf(A, count)
    return calls


def peer_convex_nmf(A: np.ndarray, count: int) -> dict[str, Any]:
    """Overcomplete's multiplicative rule; its iteration count is an argument of `fit` alone."""
    oc = overcomplete("optimization")
    if oc is None:
        return {}

    def theirs() -> float:
        torch.manual_seed(0)
        model = oc.ConvexNMF(R, tol=0, solver="mu")
        Z, D = model.fit(torch.tensor(A), max_iter=count)
        return relative(A, (Z @ D).numpy())

    return {f"Overcomplete ConvexNMF (mu), {count} iterations": theirs}


def row_convex_nmf_500(A: np.ndarray) -> dict[str, Any]:
    """The peer's own 500 iterations, most of an hour on a core: only when this row is named."""
    return {
        "ours": lambda: fit("convex-nmf", A).relative_error_,
        "ours, accelerated, 10 iterations": lambda: (
            fit("convex-nmf", A, max_iter=10).relative_error_
        ),
        **peer_convex_nmf(A, 500),
    }


def row_dictionary(A: np.ndarray) -> dict[str, Any]:
    def theirs() -> float:
        est = sk.MiniBatchDictionaryLearning(
            R, transform_algorithm="lasso_cd", transform_alpha=1.0, random_state=0
        )
        U = est.fit_transform(A)
        W = est.components_
        return float(np.linalg.norm(A - U @ W) ** 2 / 2 + np.abs(U).sum())

    return {
        "ours": lambda: fit("dictionary", A).objective_,
        "scikit-learn MiniBatchDictionaryLearning": theirs,
    }


def sparse_pca_objective(A: np.ndarray, components: np.ndarray) -> float:
    """Return the objective of unit components with least squares codes of unit norm."""
    C = A - A.mean(0)
    U = C @ components.T @ np.linalg.pinv(components @ components.T)
    size = np.linalg.norm(U, axis=0)
    V = components * size[:, None]
    fitted = (U / np.where(size > 0, size, 1)) @ V
    return float(np.linalg.norm(C - fitted) ** 2 / 2 + np.abs(V).sum())


def row_sparse_pca(A: np.ndarray) -> dict[str, Any]:
    calls: dict[str, Any] = {"ours": lambda: fit("sparse-pca", A).objective_}
    for count in (2, 5, 20, 40):
        calls[f"ours, {count} iterations"] = lambda count=count: (
            fit("sparse-pca", A, max_iter=count).objective_
        )
    for method in ("cd", "lars"):
        # Without such limits these take minutes (lars: more than 300 s).
        steps = 30 if method == "cd" else 5

        def theirs(method: str = method, steps: int = steps) -> float:
            est = sk.SparsePCA(
                R, method=method, max_iter=steps, tol=1e-3, random_state=0
            ).fit(A)
            return float(est.error_[-1])

        calls[f"scikit-learn SparsePCA ({method}, at most {steps})"] = theirs

    def batches() -> float:
        est = sk.MiniBatchSparsePCA(R, method="cd", random_state=0).fit(A)
        return sparse_pca_objective(A, est.components_)

    calls["scikit-learn MiniBatchSparsePCA (cd)"] = batches
    return calls


def row_svd(A: np.ndarray) -> dict[str, Any]:
    def theirs() -> float:
        est = sk.TruncatedSVD(R, algorithm="arpack")
        U = est.fit_transform(A)
        return relative(A, U @ est.components_)

    return {
        "ours": lambda: fit("svd", A).relative_error_,
        "scikit-learn TruncatedSVD": theirs,
    }


def row_pca(A: np.ndarray) -> dict[str, Any]:
    calls: dict[str, Any] = {"ours": lambda: fit("pca", A).relative_error_}
    for solver in ("auto", "covariance_eigh", "full"):

        def theirs(solver: str = solver) -> float:
            est = sk.PCA(R, svd_solver=solver, random_state=0)
            U = est.fit_transform(A)
            return relative(A, est.inverse_transform(U))

        calls[f"scikit-learn PCA ({solver})"] = theirs
    return calls


def negentropy(U: np.ndarray) -> float:
    """Mean squared distance of E log cosh from its Gaussian value: what FastICA makes large."""
    U = (U - U.mean(0)) / U.std(0)
    gauss = 0.374567
    return float(((np.logaddexp(U, -U) - np.log(2)).mean(0) - gauss).__pow__(2).mean())


def row_ica(A: np.ndarray) -> dict[str, Any]:
    # How many iterations a start takes is luck: five seeds together.
    def ours() -> tuple[float, list[int]]:
        fits = [
            concepts.make("ica", R, random_state=seed, max_iter=500)
            for seed in range(5)
        ]
        found = [negentropy(est.fit_transform(A)) for est in fits]
        return statistics.mean(found), [est.n_iter_ for est in fits]

    def theirs(solver: str) -> tuple[float, list[int]]:
        fits = [
            sk.FastICA(R, max_iter=500, whiten_solver=solver, random_state=seed)
            for seed in range(5)
        ]
        found = [negentropy(est.fit_transform(A)) for est in fits]
        return statistics.mean(found), [est.n_iter_ for est in fits]

    return {
        "ours": ours,
        "scikit-learn FastICA (svd)": lambda: theirs("svd"),
        "scikit-learn FastICA (eigh)": lambda: theirs("eigh"),
    }


def row_kmeans(A: np.ndarray) -> dict[str, Any]:
    # Here too: five seeds together.
    def ours() -> tuple[float, list[int]]:
        fits = [
            concepts.make("kmeans", R, random_state=seed).fit(A) for seed in range(5)
        ]
        return statistics.mean(est.relative_error_ for est in fits), [
            est.n_iter_ for est in fits
        ]

    def theirs() -> tuple[float, list[int]]:
        fits = [
            sklearn.cluster.KMeans(R, n_init=1, random_state=s).fit(A) for s in range(5)
        ]
        errors = [relative(A, est.cluster_centers_[est.labels_]) for est in fits]
        return statistics.mean(errors), [est.n_iter_ for est in fits]

    return {"ours": ours, "scikit-learn KMeans": theirs}


def row_sae(A: np.ndarray) -> dict[str, Any]:
    calls: dict[str, Any] = {}
    for variant in ("vanilla", "topk", "batchtopk", "jumprelu"):

        def ours(variant: str = variant) -> tuple[float, float, float]:
            est = concepts.make("sae", R, variant=variant, random_state=0)
            U = est.fit_transform(A)
            return est.relative_error_, float((U != 0).sum(1).mean()), float(est.dead_)

        calls[f"ours, {variant}"] = ours
    oc = overcomplete("sae")
    if oc is None:
        return calls

    def theirs(kind: str) -> tuple[float, float, float]:
        torch.manual_seed(0)
        model = (
            oc.TopKSAE(A.shape[1], R, top_k=10)
            if kind == "topk"
            else oc.SAE(A.shape[1], R)
        )
        loader = torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(torch.tensor(A)),
            batch_size=1024,
            shuffle=True,
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

        def loss(x: Any, x_hat: Any, pre: Any, codes: Any, dictionary: Any) -> Any:
            penalty = 1e-3 * codes.abs().sum(1).mean() if kind == "vanilla" else 0.0
            return (x - x_hat).square().mean() + penalty

        oc.train_sae(model, loader, loss, optimizer, nb_epochs=20, monitoring=0)
        model.eval()
        with torch.no_grad():
            _, codes, fitted = model(torch.tensor(A))
        dead = float((codes == 0).all(0).sum())
        return (
            relative(A, fitted.numpy()),
            float((codes != 0).sum(1).float().mean()),
            dead,
        )

    calls["Overcomplete SAE (L1 1e-3, 20 epochs)"] = lambda: theirs("vanilla")
    calls["Overcomplete TopKSAE (k 10, 20 epochs)"] = lambda: theirs("topk")
    return calls


def row_all(A: np.ndarray) -> dict[str, Any]:
    """All ten, cold and from the dictionary of a slightly different matrix."""
    rng = np.random.default_rng(1)
    near = A + np.float32(0.02 * A.std()) * rng.standard_normal(A.shape).astype(
        np.float32
    )
    starts = {
        n: fit(n, near, **EXTRA.get(n, {})).components_.T for n in concepts.names()
    }
    calls: dict[str, Any] = {}
    for name in concepts.names():
        extra = EXTRA.get(name, {})
        warm = {**EXTRA.get(name, {}), **WARM.get(name, {})}
        calls[f"{name}, cold"] = lambda name=name, extra=extra: (
            fit(name, A, **extra).relative_error_
        )
        calls[f"{name}, warm"] = lambda name=name, warm=warm: (
            concepts.make(name, R, random_state=0, **warm)
            .fit(A, init_dictionary=starts[name])
            .relative_error_
        )
    return calls


EXTRA: dict[str, dict[str, Any]] = {"nmf": {"nonnegative": "relu"}}
WARM: dict[str, dict[str, Any]] = {"convex-nmf": {"max_iter": 5}, "sae": {"epochs": 5}}
SLOW = ("convex_nmf_500",)
ROWS = {
    name.removeprefix("row_"): f
    for name, f in list(globals().items())
    if name[:4] == "row_"
}


def run_row(name: str, data: str, A: np.ndarray, repeats: int) -> dict[str, Any]:
    calls = ROWS[name](A)
    times: dict[str, list[float]] = {k: [] for k in calls}
    results: dict[str, Any] = {}
    for _ in range(repeats):
        for label, call in calls.items():
            seconds, results[label] = cpu(call)
            times[label].append(seconds)
    print(f"\n{name} on {data}")
    for label in calls:
        print(
            f"  {label:52s} {statistics.median(times[label]):9.3f} s   {results[label]}",
            flush=True,
        )
    return {k: [statistics.median(times[k]), results[k]] for k in calls}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "rows",
        nargs="*",
        help=f"of {', '.join(ROWS)}; default all but {', '.join(SLOW)}",
    )
    parser.add_argument("--activations", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=("real", "synthetic"))
    parser.add_argument("--json", type=Path, help="write medians and results here")
    options = parser.parse_args()
    matrices = {"synthetic": synthetic()} if options.only != "real" else {}
    if options.activations is not None and options.only != "synthetic":
        A = np.load(options.activations).astype(np.float32)
        matrices["real"] = A / np.sqrt(np.mean(A**2, dtype=np.float64)).astype(
            np.float32
        )
    out: dict[str, Any] = {}
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for data, A in matrices.items():
            for name in options.rows or [n for n in ROWS if n not in SLOW]:
                out[f"{name} on {data}"] = run_row(name, data, A, options.repeats)
    if options.json:
        options.json.write_text(json.dumps(out, indent=1, default=float))


if __name__ == "__main__":
    main()
