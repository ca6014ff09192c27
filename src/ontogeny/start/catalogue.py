"""One line on each observable: the question that it answers, what it needs, and what it costs."""

from __future__ import annotations

from typing import NamedTuple


class Line(NamedTuple):
    """What people ask of an observable before they choose it."""

    answers: str
    needs: str
    costs: str


_PASS = "one pass over the texts at each step"
_FIT = "one fit for each layer and step, more where noise is measured"
_CURVES = "seconds for each layer, once"
_LABELS = "texts with labels"
_MAPS = "attention maps"
_TEXTS = "texts"
_HEAD = "texts, a vocabulary head"
_WEIGHTS = "weights alone"
_CONCEPTS = "a node of concepts"
_CURVE = "a node with curves"

CATALOGUE: dict[str, Line] = {
    "loss": Line("How well does the model predict these texts?", _HEAD, _PASS),
    "predictions": Line(
        "What does the model say in gaps of sentences, and is it right?", _HEAD, "a few texts"
    ),
    "token-losses": Line("Which words of a text are learned, and when?", _HEAD, "a few texts"),
    "activation-decay": Line(
        "How far are a layer's activations from those of the last checkpoint?", _TEXTS, _PASS
    ),
    "activation-path": Line(
        "On what path do a layer's activations move, along fixed random directions?", _TEXTS, _PASS
    ),
    "effective-dimensions": Line("How many directions does a layer use?", _TEXTS, _PASS),
    "similarity": Line(
        "How similar is a layer to itself at the last checkpoint (CKA and others)?", _TEXTS, _PASS
    ),
    "layer-similarity": Line(
        "How alike are the layers of a model, and since when?", _TEXTS, f"{_PASS}, and every pair"
    ),
    "step-similarity": Line(
        "Which checkpoints arrange tokens alike, and where does that change at once?", _TEXTS, _PASS
    ),
    "concepts": Line(
        "Which directions does a dictionary find at each step, and how far are they from the last?",
        _TEXTS,
        _FIT,
    ),
    "joint-concepts": Line(
        "Which concepts are there, what does each mean, and when is it born?",
        _TEXTS,
        "one fit for each layer over twelve steps, then one regression a step",
    ),
    "concept-effects": Line(
        "Does a concept matter: what does the loss rise by without it?",
        "a node joint-concepts, a vocabulary head",
        "tens of passes for each layer at some steps",
    ),
    "concept-distances": Line(
        "How far are the concepts of every two checkpoints from each other?", _CONCEPTS, _CURVES
    ),
    "concept-plane": Line("How do all concepts of all steps lie in one plane?", _CONCEPTS, _CURVES),
    "concept-tracks": Line(
        "Which concept of one checkpoint becomes which of the next?", _CONCEPTS, _CURVES
    ),
    "encoder-dynamics": Line(
        "Can the last checkpoint's concepts be read from earlier activations?", _TEXTS, _FIT
    ),
    "intrinsic-dimension": Line(
        "In how many dimensions do the dictionaries lie, early and late?", _CONCEPTS, _CURVES
    ),
    "lipschitz": Line(
        "How much do concepts move when activations and parameters do?", _CONCEPTS, _FIT
    ),
    "transform-dynamics": Line(
        "Which transform takes the last dictionary to that of each step?", _CONCEPTS, _CURVES
    ),
    "attention-entropy": Line("How focused is each attention head?", f"{_TEXTS}, {_MAPS}", _PASS),
    "readout-attention": Line(
        "Where does the last token of each text look?", f"{_TEXTS}, {_MAPS}", _PASS
    ),
    "attention-heads": Line(
        "Which heads look at the token before, at a copy, or at what followed it, and since when?",
        f"a tokenizer or {_TEXTS}, {_MAPS}",
        "one pass over 64 random sequences at each step",
    ),
    "in-context-learning": Line(
        "Does the model predict better late in a text than early?", _HEAD, "three passes a step"
    ),
    "ngram-agreement": Line(
        "When does the model predict what word frequencies, bigrams and trigrams do?",
        _HEAD,
        f"{_PASS}, with whole distributions",
    ),
    "text-statistics": Line(
        "Which statistics of its texts has the model reached, from coarse to fine, and when?",
        _HEAD,
        f"{_PASS}, with whole distributions",
    ),
    "logit-lens": Line(
        "From which layer on is the prediction there?",
        "texts, a known family with a vocabulary head",
        "the vocabulary head once for each layer, at each step",
    ),
    "calibration": Line("Is the model as often right as it is sure?", _HEAD, _PASS),
    "copying-heads": Line(
        "Which heads raise the token that they look at?",
        "weights of a known family",
        "a product of both vocabulary matrices at each step",
    ),
    "commutators": Line(
        "Does the order of two gradient steps matter?",
        _HEAD,
        "some dozens of gradients at each step",
    ),
    "learning-coefficient": Line(
        "How degenerate is the loss around each checkpoint?",
        "a causal model or a classifier, the extra llc (devinterp)",
        "some hundred gradients at each step",
    ),
    "embedding-frequencies": Line(
        "Over how many frequencies do tokens that are numbers spread?",
        _WEIGHTS,
        "one Fourier transform at each step",
    ),
    "feature-geometry": Line(
        "How many features does a matrix hold, and do they share dimensions?",
        _WEIGHTS,
        "products of columns at each step",
    ),
    "orientation": Line(
        "Do matrices of the same size share their principal directions?",
        _WEIGHTS,
        "one decomposition for each matrix and step",
    ),
    "projection": Line(
        "Which share of a gradient lies in the directions that the run moves along?",
        _HEAD,
        "gradients as commutators, and all steps of the matrices",
    ),
    "vocabulary-concepts": Line(
        "Which directions of the embedding appear, and when?",
        "weights, for names the tokenizer",
        "one fit over twelve steps",
    ),
    "weight-norms": Line(
        "How large is each weight matrix, and over how many directions?",
        _WEIGHTS,
        "one decomposition for each matrix and step",
    ),
    "weight-rank": Line(
        "In how few directions does each weight matrix move over the run?",
        _WEIGHTS,
        "each matrix of all steps, once",
    ),
    "readout-accuracy": Line(
        "How often is a classifier that reads at the last token right?",
        f"{_LABELS}, a classifier",
        _PASS,
    ),
    "sae-probe": Line(
        "Which latents of a sparse autoencoder follow a label, and do they matter?",
        f"{_LABELS}, marker ids, a classifier",
        "one autoencoder a step",
    ),
    "tcav": Line(
        "Do predictions follow a labelled concept?", _LABELS, "gradients and refits a step"
    ),
    "cav": Line("Where does a labelled concept point, and can it be read?", _LABELS, _FIT),
    "word-semantics": Line(
        "When does the model know which words occur in the same contexts?",
        "texts, a vocabulary head",
        "thousands of short contexts at each step",
    ),
    "fits": Line("Which law do a node's curves follow?", _CURVE, _CURVES),
    "learning-dynamics": Line("When is a curve learned, stable, forgotten?", _CURVE, _CURVES),
    "regimes": Line("When does the noise around a curve's trend change?", _CURVE, _CURVES),
    "signals": Line("Does one node's curve follow another's?", "two nodes with curves", _CURVES),
}
"""By the kind that a study file names; those that build on other nodes name them with ``of=``."""
