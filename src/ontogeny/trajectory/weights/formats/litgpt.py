"""Models of litgpt, which says in model_config.yaml how they are built."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....errors import CheckpointError

_SETTINGS = "model_config.yaml"


@dataclass(frozen=True)
class LitGPTModel:
    """Builds the model of a litgpt folder, with fresh weights."""

    settings: Path

    def described(self) -> dict[str, str]:
        """Return what the file says of the model, line by line."""
        lines = self.settings.read_text(encoding="utf-8").splitlines()
        return {
            name.strip(): value.strip()
            for name, _, value in (x.partition(":") for x in lines)
        }

    def __call__(self) -> Any:
        """Return the module."""
        try:
            from litgpt import GPT, Config
        except ImportError:
            raise CheckpointError(
                f"{self.settings.parent} is a model of litgpt: pip install litgpt, or convert it "
                "with litgpt convert_from_litgpt."
            ) from None
        return GPT(Config.from_file(self.settings))


def template(path: Path) -> LitGPTModel | None:
    """Return what builds the model of a file of litgpt, or None if it is none."""
    settings = path.parent / _SETTINGS
    return LitGPTModel(settings) if settings.is_file() else None
