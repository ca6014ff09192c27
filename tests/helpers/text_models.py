"""Models of a tokenizer for English, and a study of them that shows texts."""

import warnings

import ontogeny as og
from helpers.study_examples import developing, record
from ontogeny import observables
from ontogeny.tasks import bundled_texts, train_tokenizer


def with_tokenizer(models, tokenizer):
    """Return models with a row for each token of a tokenizer."""
    for model in models.values():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
        model.config.mask_token_id = tokenizer.mask_token_id
    return models


def save_tokenizer(tokenizer, run):
    """Write a tokenizer beside every checkpoint of a run, as the Trainer does."""
    for checkpoint in run.glob("checkpoint-*"):
        tokenizer.save_pretrained(checkpoint)


def text_run(folder, steps):
    """Record models with a tokenizer for English as a run, and return its folder."""
    tokenizer = train_tokenizer(bundled_texts(), 300)
    record(with_tokenizer(developing(steps), tokenizer), folder)
    save_tokenizer(tokenizer, folder)
    return folder


def text_study(folder, steps=(0, 1, 2, 4, 8, 16), **options):
    """Run a study that holds texts, gaps and tokens; return its folder."""
    trajectory = og.Trajectory.from_folder(text_run(folder / "run", steps))
    inputs = og.Inputs.from_texts(
        bundled_texts()[:20], trajectory.tokenizer(), max_length=24
    )
    chosen = [
        observables.Loss(),
        observables.Predictions(n_gaps=3),
        observables.TokenLosses(n_texts=2, max_tokens=12),
        observables.AttentionEntropy(shown_texts=2),
        observables.ActivationDecay("mlp"),
    ]
    study = og.Study(trajectory, inputs, chosen, device="cpu", noise=0, **options)
    study.run(folder / "study")
    return folder / "study"
