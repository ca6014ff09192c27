"""Model classes whose code lies in the checkpoint's own repository; used only when asked for."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from torch import nn

from ...errors import CheckpointError
from ..weights.transformers_models import model_class
from .revision import HubRevision

logger = logging.getLogger("ontogeny.trajectory")


@dataclass(frozen=True)
class RemoteModel:
    """Builds an untrained model from the code of a Hub revision, pinned to its commit.

    Architectures that transformers has itself are taken from there.
    """

    source: HubRevision

    def __call__(self) -> nn.Module:
        """Return the module.

        Raises
        ------
        CheckpointError
            If the configuration names no class, or its code fails.
        """
        from transformers import AutoConfig
        from transformers.dynamic_module_utils import get_class_from_dynamic_module

        self.source.download()
        folder = self.source.path
        try:
            config = AutoConfig.from_pretrained(
                folder, trust_remote_code=True, local_files_only=True
            )
            reference = self._class_reference(config)
            if reference is None:
                return model_class(folder)(config)
            logger.warning("running model code of %s at %s", self.source.repo, self.source.name)
            cls: Any = get_class_from_dynamic_module(reference, folder, local_files_only=True)
            return cls(config)
        except CheckpointError:
            raise
        except Exception as error:  # whatever foreign code raises, it is this revision that failed
            raise CheckpointError(
                f"the code of {self.source.repo} at {self.source.name} does not build a model: "
                f"{error}"
            ) from error

    def _class_reference(self, config: Any) -> str | None:
        """Return ``"file.Class"`` of the architecture that config.json names; None without code."""
        architectures = list(getattr(config, "architectures", None) or ())
        references = [
            value
            for key, value in (getattr(config, "auto_map", None) or {}).items()
            if key.startswith("AutoModel") and isinstance(value, str)
        ]
        for reference in references:
            if reference.rpartition(".")[2] in architectures:
                return reference
        return None
