"""The runs of the study, as data: variants of methods, and the places they are put into."""

from dataclasses import dataclass, field

from primax.config.schema import Config
from primax.errors import check_choice
from primax.paper.plan import sweep_plan
from primax.presets import configure

Settings = dict[str, str]


@dataclass(frozen=True)
class Scale:
    """How much is run; the preset of the same name says how large."""

    wings: tuple[str, ...]
    """Seeds in TwoWings, each a folder: as many as fit into one program."""
    others: str
    """Seeds everywhere else."""


SCALES = {
    "smoke": Scale(("0-1",), "0-1"),
    "quick": Scale(("100-103",), "100-103"),
    "paper": Scale(("0-14", "15-29"), "0-14"),
}
"""`quick` has seeds of its own: what is tried there tells nothing of those the claims are about."""


@dataclass(frozen=True)
class Variant:
    """A method under settings."""

    name: str
    label: str
    """As tables and figures call it."""
    method: str
    settings: Settings = field(default_factory=dict)
    small: Settings | None = None
    """Settings that take their place at scale `smoke`, where those do not fit."""


@dataclass(frozen=True)
class Place:
    """A world, and what is looked at in it."""

    name: str
    label: str
    world: str
    measure: str
    """What a run is judged by there."""
    what: str
    """The measure, in words."""
    settings: Settings = field(default_factory=dict)


def _prime(name: str, label: str, small: Settings | None = None, **settings: str) -> Variant:
    dotted = {key.replace("__", "."): value for key, value in settings.items()}
    return Variant(name, label, "prime", dotted, small)


def _plain(*methods: tuple[str, str]) -> tuple[Variant, ...]:
    return tuple(Variant(name, label, name) for name, label in methods)


BETTER = Variant("net_place", "Net novelty, learnt key", "net_novelty", {"keys.kind": "place"})
"""What is meant to do better than PRIME: one configuration for all worlds, with no key from any."""
BESIDE = (
    Variant("prime", "PRIME", "prime"),
    _prime("no_penalty", "PRIME, λ = 0", reward__aleatoric_weight="0"),
    *_plain(("count", "Counts"), ("rnd", "RND")),
    BETTER,
)
"""Run wherever there is noise."""
DOSES = (
    _prime("penalty_quarter", "PRIME, λ = 0.125", reward__aleatoric_weight="0.125"),
    _prime("penalty_four", "PRIME, λ = 2", reward__aleatoric_weight="2"),
    _prime("no_gate", "PRIME, α = 0", reward__gate_weight="0"),
    _prime("gate_quarter", "PRIME, α = 0.125", reward__gate_weight="0.125"),
    _prime("gate_double", "PRIME, α = 1", reward__gate_weight="1"),
)
ABLATIONS = (
    _prime("one_head", "PRIME, one statistics head", reward__heads="1"),
    _prime("live_counts", "PRIME, counts read live", reward__counts="live"),
    _prime("window200", "PRIME, window 200", {"window": "100"}, window="200"),
)
OTHERS = _plain(
    ("net_novelty", "Net novelty"),
    ("rnd_snapshot", "RND, frozen by window"),
    ("disagreement", "Disagreement"),
    ("icm", "ICM"),
    ("smirl", "SMIRL"),
    ("s_adapt", "S-Adapt"),
    ("moss", "Mixture of Surprises"),
    ("ama", "AMA"),
    ("lpm", "LPM"),
    ("noveld", "NovelD"),
    ("e3b", "E3B"),
    ("random", "Random walker"),
)
WINGS = Place("two_wings", "TwoWings", "two_wings", "score_tail", "silent share, last fifth")
SCORES = (
    ("butterflies", "Butterflies", "average", "catches an episode"),
    ("maze", "Maze", "peak", "peak of the share of episodes with the flag"),
)
"""The paper's worlds, and what a run is judged by there."""
MODES = {"always": "always on", "region": "in one half", "switch": "by an action"}
"""When the noise is on, in other worlds."""
NOISY = tuple(
    Place(
        f"{world}_{mode}",
        f"{label}, noise {words}",
        f"noisy:{world}",
        measure,
        what,
        {"world.noise_when": mode}
        | ({"world.noise_region": "by_seed"} if mode == "region" else {}),
    )
    for world, label, measure, what in SCORES
    for mode, words in MODES.items()
)
BARE = tuple(Place(world, label, world, measure, what) for world, label, measure, what in SCORES)
"""The same without noise, for what is meant to do better there too."""
PLACES = {place.name: place for place in (WINGS, *NOISY, *BARE)}
VARIANTS = {each.name: each for each in (*BESIDE, *DOSES, *ABLATIONS, *OTHERS)}


@dataclass(frozen=True)
class Cell:
    """A variant in a place: one run, or one for each set of seeds."""

    variant: Variant
    place: Place

    def folders(self, scale: str) -> dict[str, str]:
        """Names of its runs' folders, and the seeds of each."""
        name = f"{self.variant.name}_{self.place.name}"
        seeds = SCALES[scale]
        if self.place is not WINGS:
            return {name: seeds.others}
        return {name if i == 0 else f"{name}_{part}": part for i, part in enumerate(seeds.wings)}

    def settings(self, scale: str) -> Settings:
        """What is set beside the preset of a scale."""
        own = self.variant.small if scale == "smoke" else None
        return self.place.settings | (self.variant.settings if own is None else own)

    def config(self, scale: str) -> Config:
        """What its runs are made with."""
        return configure(self.variant.method, self.place.world, scale, self.settings(scale))


CELLS = (
    *(Cell(variant, WINGS) for variant in VARIANTS.values()),
    *(Cell(variant, place) for place in NOISY for variant in BESIDE),
    *(Cell(BETTER, place) for place in BARE),
)


def plan(scale: str) -> str:
    """All runs as a plan for `primax sweep`, in TOML."""
    check_choice("--scale", scale, SCALES)
    entries = [
        (
            {
                "name": name,
                "method": cell.variant.method,
                "world": cell.place.world,
                "seeds": seeds,
            },
            cell,
        )
        for cell in CELLS
        for name, seeds in cell.folders(scale).items()
    ]
    said = [(words, cell.settings(scale)) for words, cell in entries]
    return sweep_plan(
        f"The study of noise at scale {scale}: primax sweep makes its runs.", scale, said
    )
