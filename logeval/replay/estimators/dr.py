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
from logeval.replay.estimators.estimator import OF_CELLS, View, items_shown
from logeval.running.arrays import Bools


@dataclass(frozen=True)
class DR(DM):
    """Residuals with the weights of IP.

    Unbiased if the click model is right; of items where they were shown also if IP's assumption
    holds, with a model of item and position.
    """

    NAME = "DR"
    LEVEL = "item-position"

    @property
    def strength(self) -> int:
        """As of PBM, if the click model is one of item and position."""
        return 2 if self.click_model.upper() in OF_CELLS else self.STRENGTH

    def supported(self, view: View) -> Bools:
        """Items that were shown anywhere: where they were not the model's value stands."""
        return items_shown(view)


@dataclass(frozen=True)
class CascadeDR(DM):
    """Residuals with the weights of Prefix.

    Unbiased if the click model is right, or Prefix's assumption holds.
    """

    NAME = "Cascade-DR"
    LEVEL = "prefix"
    STRENGTH = 1

    @property
    def assumes(self) -> str:
        """The click model, or what its weights correct it for."""
        return f"{super().assumes}, or read from the top"
