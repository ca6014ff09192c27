"""TCAV against Captum's, on the same small model, data and directions."""

import numpy as np
import pytest
import torch
from torch import nn

from ontogeny import Inputs
from ontogeny.capture import Target, directional_derivatives

LENGTH, WIDTH, CLASSES = 5, 6, 3
LAYERS = ("embed", "first", "second")


class SmallClassifier(nn.Module):
    """Texts of one length to classes; nonlinear, so that derivatives differ between texts."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(20, WIDTH)
        self.first = nn.Linear(WIDTH, WIDTH)
        self.second = nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(LENGTH * WIDTH, CLASSES)

    def forward(self, input_ids):
        hidden = torch.tanh(self.first(self.embed(input_ids)))
        hidden = hidden + torch.sin(2 * self.second(hidden))
        return self.head(torch.tanh(hidden).flatten(1))


def directions():
    return {
        layer: np.random.default_rng(i).normal(size=WIDTH)
        for i, layer in enumerate(LAYERS)
    }


def ids():
    return np.random.default_rng(0).integers(1, 20, (60, LENGTH))


@pytest.mark.filterwarnings("ignore")  # Captum warns that token ids have no gradient
@pytest.mark.parametrize("label", range(CLASSES))
def test_scores_and_signs_are_captums(label, tmp_path):
    concept = pytest.importorskip("captum.concept")
    layer_attribution = pytest.importorskip("captum.attr").LayerGradientXActivation

    class Fixed(concept.Classifier):
        """A classifier whose direction is given: both sides then test the same vector."""

        def __init__(self):
            self.layer = iter(LAYERS)

        def train_and_eval(self, dataloader, **_):
            self._vector = np.tile(directions()[next(self.layer)], LENGTH)
            return

        def weights(self):
            v = torch.tensor(self._vector, dtype=torch.float32)
            return torch.stack([v, -v])

        def classes(self):
            return [0, 1]

    model = SmallClassifier()
    texts = torch.tensor(ids())
    given = [
        concept.Concept(
            i, name, torch.utils.data.DataLoader(texts[i::2], batch_size=30)
        )
        for i, name in enumerate(("planted", "other"))
    ]
    tcav = concept.TCAV(
        model,
        list(LAYERS),
        classifier=Fixed(),
        layer_attr_method=layer_attribution(model, None, multiply_by_inputs=False),
        save_path=str(tmp_path),
    )
    scores = tcav.interpret(texts, [given], target=label)["0-1"]
    ours = directional_derivatives(
        model,
        Inputs.from_tokens(ids()),
        LAYERS,
        directions(),
        Target("class", label=label),
    )
    for layer in LAYERS:
        share = float((ours.derivative.sel(layer=layer) > 0).mean())
        assert 0 < share < 1
        assert float(scores[layer]["sign_count"][0]) == pytest.approx(share)
        attribution = layer_attribution(
            model, getattr(model, layer), multiply_by_inputs=False
        )
        gradient = (
            attribution.attribute(texts, target=label).detach().flatten(1).numpy()
        )
        signs = np.sign(gradient @ np.tile(directions()[layer], LENGTH))
        np.testing.assert_array_equal(
            signs, np.sign(ours.derivative.sel(layer=layer).values[0])
        )
