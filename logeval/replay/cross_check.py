"""``replay cross-check``: do simulators and the log agree on which policy is best?"""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Annotated

from logeval.errors import LogevalError
from logeval.replay.arguments import POLICY, Items, Replaying
from logeval.stage import Arg, Manifest, function, stage

if TYPE_CHECKING:
    from logeval.replay.agreement import CrossCheck


@stage(
    "replay cross-check",
    example="logeval replay cross-check data/yandex --policy dcmKL-UCB --policy Random --items 4",
    again="logeval replay cross-check LOG --policy POLICY --out {folder}",
    read="logeval.replay.agreement:CrossCheck.read",
)
class ReplayCrossCheck(Replaying["CrossCheck"]):
    """The same policies by simulators, by replay and by estimates: do they agree on the best?

    Simulated are a DCM, a PBM and the model that scores best; estimated are the IP, Prefix and
    DR values (of that model) of the lists that the policies ended with.
    """

    policies: Annotated[str | type | Sequence[str | type], POLICY]
    _: KW_ONLY
    positions: Annotated[int, Arg("Length of the lists.", least=1)] = 2
    items: Items = None
    horizon: Annotated[int | None, Arg("Steps at most.", least=1)] = None
    runs: Annotated[int, Arg("Runs, and shuffles of the log.", least=2)] = 10
    rounds: Annotated[int, Arg("Bootstrap rounds.", least=0, on_command_line=False)] = 200

    def check(self) -> None:
        """Two policies at least."""
        from logeval.policies.registry import named_policies

        self._set("policies", named_policies(self.policies))
        if len(self.policies) < 2:  # type: ignore[arg-type]
            raise LogevalError("a cross-check compares policies; name two or more, as Random")

    def make(self, manifest: Manifest) -> "CrossCheck":
        """The three ways side by side."""
        from logeval.replay.agreement import cross_check

        return cross_check(self, manifest)


replay_cross_check = function(ReplayCrossCheck)
