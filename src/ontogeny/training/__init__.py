"""The one small training loop, and the recorded run of the demo.

What the papers train is in `ontogeny_papers.reproduce.training`.

::

    train                       an optimiser's steps on batches, with callbacks (any model or loss)
    masked_language_modelling   random crops of a text, and the loss at their masked positions
    causal_language_modelling   random crops of a text, and the loss of their next tokens
    demo_model, causal_model    a small EuroBERT, a small GPT-NeoX
    record_training_run         all of it on texts, with checkpoints: a folder to study
    scrambled                   the same run on tokens in random order, or random tokens: a control
    scrambled_tokens            such tokens, for a loop of your own
"""

from .causal import causal_language_modelling
from .control_run import scrambled
from .loop import adamw_one_cycle, train
from .masked import masked_language_modelling
from .models import causal_model, demo_model
from .run import RunSettings, record_training_run
from .scrambling import scrambled_tokens

__all__ = [
    "RunSettings",
    "adamw_one_cycle",
    "causal_language_modelling",
    "causal_model",
    "demo_model",
    "masked_language_modelling",
    "record_training_run",
    "scrambled",
    "scrambled_tokens",
    "train",
]
