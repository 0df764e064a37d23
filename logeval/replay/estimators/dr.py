"""DR: the direct method plus weighted residuals, at item-position and at prefix level.

V = DM + (1/n) sum over SERPs and k of min(rho, M) (c_k - P(c_k = 1 | A)), after Dudik, Langford,
Li, "Doubly robust policy evaluation and learning" (ICML 2011); at prefix level with the weights of
Kiyohara et al., "Doubly robust off-policy evaluation for ranking policies under the cascade
behavior model" (WSDM 2022). Where the log does not show what the target would, rho is 0 and the
model's value stands.

The weights of a level correct a model whose clicks depend on that level: on item and position for
DR (PBM, the CTRs), on the prefix for Cascade-DR (every click model here). With, say, a DCM the
residuals of DR do not add up to the model's error, and it is right only if the DCM is.
"""

from __future__ import annotations

from dataclasses import dataclass

from logeval.replay.estimators.dm import DM

OF_CELLS = ("GCTR", "RCTR", "DCTR", "PBM")  # click models of item and position alone


@dataclass(frozen=True)
class DR(DM):
    """Residuals with the weights of IP.

    Unbiased if the click model is right; or IP's assumption, with a model of item and position.
    """

    NAME = "DR"
    LEVEL = "item-position"
    ASSUMES = "a click depends on the item and its position alone"

    @property
    def assumes(self) -> str:
        """The click model, or what its weights correct it for."""
        known = super().assumes
        return f"{known}, or {self.ASSUMES}" if self.strength < self.STRENGTH else known

    @property
    def strength(self) -> int:
        """As of IP, if the click model is one of item and position."""
        return 1 if self.click_model.upper() in OF_CELLS else self.STRENGTH


@dataclass(frozen=True)
class CascadeDR(DR):
    """Residuals with the weights of Prefix.

    Unbiased if the click model is right, or Prefix's assumption holds.
    """

    NAME = "Cascade-DR"
    LEVEL = "prefix"
    ASSUMES = "read from the top"

    @property
    def strength(self) -> int:
        """As of Prefix, whatever the model."""
        return 1
