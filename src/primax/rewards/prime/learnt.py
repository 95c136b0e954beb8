"""Learnt novelty for PRIME: RND and a forward ensemble, read as of the window's beginning."""

from dataclasses import replace

from jaxtyping import Array, Float, PRNGKeyArray

from primax.nn import nets
from primax.rewards.base import Metrics, Spec
from primax.rewards.disagreement import Disagreement, DisagreementConfig, DisagreementState
from primax.rewards.prime.cfn import CfnNovelty
from primax.rewards.prime.counts import Counts
from primax.rewards.prime.novelty import Novelty, Where
from primax.rewards.rnd import Rnd, RndConfig, RndState
from primax.rewards.transition import Batch


class RndNovelty(Novelty[RndState, RndState]):
    """x(s): RND's error at s, which is all it knows of (s, a), over its deviation, clipped at 5."""

    spec: Spec
    rnd: Rnd

    def __init__(self, spec: Spec):
        self.spec, self.rnd = spec, Rnd(spec, RndConfig())

    @property
    def bound(self) -> float:
        return self.rnd.config.reward_clip

    def init(self, key: PRNGKeyArray) -> RndState:
        return self.rnd.init(key)

    def freeze(self, live: RndState) -> RndState:
        """Target, predictor and scale; what only training needs stays behind."""
        return replace(live, optimiser=())

    def value(self, frozen: RndState, where: Where) -> Float[Array, "*n"]:
        return nets.map_chunks(lambda obs: self.rnd.worth(frozen, obs), where.obs)

    def learn(self, live: RndState, batch: Batch, key: PRNGKeyArray) -> tuple[RndState, Metrics]:
        """On the states that are asked about, not on those they led to."""
        return self.rnd.learn(live, replace(batch, next_obs=batch.obs), key)


class EnsembleNovelty(Novelty[DisagreementState, DisagreementState]):
    """x(s, a): what forward models disagree by, over its deviation; tanh alone bounds it."""

    spec: Spec
    ensemble: Disagreement

    def __init__(self, spec: Spec):
        self.spec, self.ensemble = spec, Disagreement(spec, DisagreementConfig())

    @property
    def bound(self) -> float:
        return float("inf")

    def init(self, key: PRNGKeyArray) -> DisagreementState:
        return self.ensemble.init(key)

    def freeze(self, live: DisagreementState) -> DisagreementState:
        """Encoder, models and scale; what only training needs stays behind."""
        return replace(live, optimiser=())

    def value(self, frozen: DisagreementState, where: Where) -> Float[Array, "*n"]:
        return self.ensemble.worth(frozen, where.obs, where.action)

    def learn(
        self, live: DisagreementState, batch: Batch, key: PRNGKeyArray
    ) -> tuple[DisagreementState, Metrics]:
        return self.ensemble.learn(live, batch, key)


NOVELTIES = {"count": Counts, "rnd": RndNovelty, "ensemble": EnsembleNovelty, "cfn": CfnNovelty}
"""By the name of the option; each is built from the world's Spec."""
