"""``replay policy``: what learning policies would have earned, from the log itself."""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Annotated, Literal

from logeval.errors import LogevalError
from logeval.replay.arguments import POLICY, Items, Replaying
from logeval.stage import Arg, Manifest, function, stage

if TYPE_CHECKING:
    from logeval.policies.registry import PolicySpec
    from logeval.replay.replays import PolicyReplay

MOST_SHUFFLES = 100_000
TOP_QUERIES = 20


@stage(
    "replay policy",
    example="logeval replay policy data/yandex --policy dcmKL-UCB --positions 2 --items 4",
    again="logeval replay policy LOG --policy POLICY --out {folder}",
    read="logeval.replay.replays:PolicyReplay.read",
)
class ReplayPolicy(Replaying["PolicyReplay"]):
    """Replay learning policies on the log: a SERP answers when it shows the wanted list.

    A run is a shuffle of the log; equal runs of two policies meet the same order. ``items``
    keeps the most shown candidates only. In the ``order`` of time a run goes through the days of
    the log, and shuffles the searches of each day: users who change meet the policy as they did;
    a note says what the same policy earns when all days are shuffled.
    """

    policies: Annotated[str | type | Sequence[str | type], POLICY]
    _: KW_ONLY
    positions: Annotated[int, Arg("A SERP counts when its first K items match.", least=1)] = 2
    items: Items = None
    horizon: Annotated[int | None, Arg("Accepted SERPs at most; default: 10000.", least=1)] = None
    shuffles: Annotated[int, Arg("Random orders of the log.", least=1, most=MOST_SHUFFLES)] = 10
    order: Annotated[
        Literal["shuffled", "time"],
        Arg("shuffled, or time: by the log's days, those of a day shuffled, beside shuffled."),
    ] = "shuffled"
    checkpoints: Annotated[
        int | Sequence[int] | None, Arg("Steps at which totals are kept.", on_command_line=False)
    ] = None

    def check(self) -> None:
        """Policies that show lists, of enough candidates."""
        from logeval.clicks.read_rows import LONGEST_LIST
        from logeval.tracks.ranking.environment import RANKING

        if self.positions > LONGEST_LIST:
            raise LogevalError(f"positions={self.positions}: must be at most {LONGEST_LIST:,}")
        if not self.policies:
            raise LogevalError("there is no policy to replay; name one, as dcmKL-UCB")
        if wrong := [s for s in self.specs if s.track not in (RANKING.name, None)]:
            raise LogevalError(
                f"policy {wrong[0].name}: only policies that show lists can be replayed"
            )
        if self.items is not None and self.items < self.positions:
            raise LogevalError(
                f"items={self.items}: a list of {self.positions} needs as many candidates"
            )
        if self.queries is None and self.top_queries is None:
            self._set("top_queries", TOP_QUERIES)

    @property
    def specs(self) -> "list[PolicySpec]":
        """The policies."""
        from logeval.policies.registry import parse_policies

        return parse_policies(self.policies)

    def arguments(self) -> Manifest:
        """The settings, with policies as they print."""
        return super().arguments() | {"policies": [spec.name for spec in self.specs]}

    def own(self) -> list[str]:
        """Policies that are classes of the user's own."""
        return [spec.name for spec in self.specs if not spec.built_in]

    def make(self, manifest: Manifest) -> "PolicyReplay":
        """The replays."""
        from logeval.replay.replays import replay

        return replay(self, manifest)


replay_policy = function(ReplayPolicy)
