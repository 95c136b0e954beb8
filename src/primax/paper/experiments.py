"""Every run the paper's numbers need, and those beside it, as data."""

from dataclasses import dataclass, field, replace

from primax.config.schema import Config
from primax.errors import InputError, canonical, hint
from primax.methods import METHODS
from primax.presets import configure

Settings = dict[str, str]

WORLDS = ("butterflies", "maze")
"""The paper's two."""


@dataclass(frozen=True)
class Scale:
    """How much of it is run; the preset of the same name says how large."""

    seeds: int
    """At most."""
    is_whole: bool = True
    """Whether the runs beside the paper's are part of it."""
    settings: dict[str, Settings] = field(default_factory=dict)
    """By world, beside the preset's."""


SCALES = {
    "smoke": Scale(2),
    "quick": Scale(2, is_whole=False, settings={"butterflies": {"steps": "15_000"}}),
    "paper": Scale(15),
}
ARTEFACTS = (
    *(f"table{i}" for i in range(1, 10)),
    *(f"figure{i}" for i in range(1, 4)),
    "tableA",
    "tableB",
    "tableC",
    "tableD",
    "tableE",
    "tableF",
    "figureA",
    "scorecard",
    "claims",
)
"""What is made from the runs; letters are ours, numbers the paper's."""

COURSE = ("tableE", "tableF")
MAIN = (
    "table1",
    "table5",
    "table6",
    "table7",
    "figure1",
    "tableA",
    *COURSE,
    "scorecard",
    "claims",
)
LITERAL_ONLY = ("tableA", "tableC", "tableD")
ABLATION = ("table2", "table5", "table6", "table7", "scorecard", "claims")


@dataclass(frozen=True)
class Variant:
    """A method under a set of settings, run in both worlds."""

    name: str
    label: str
    """As tables and figures call it."""
    method: str
    feeds: tuple[str, ...]
    """What is made from it."""
    settings: Settings = field(default_factory=dict)
    """Beside the method's own."""
    seeds: int = 15
    """From seed 0 on."""
    small: dict[str, Settings] = field(default_factory=dict)
    """Settings that take their place at a smaller scale, where those do not fit."""
    is_papers: bool = False
    """Whether the paper ran it."""

    @property
    def is_available(self) -> bool:
        """Whether this version has the method."""
        return self.method in METHODS


@dataclass(frozen=True)
class Cell:
    """One run: a variant in a world."""

    variant: Variant
    world: str

    @property
    def name(self) -> str:
        """Also its folder's."""
        return cell_name(self.variant.name, self.world)

    def is_in(self, scale: str) -> bool:
        """Whether it is run at a scale without being named."""
        return SCALES[scale].is_whole or self.variant.is_papers

    def seeds(self, scale: str) -> tuple[int, ...]:
        """The seeds it runs at a scale."""
        return tuple(range(min(SCALES[scale].seeds, self.variant.seeds)))

    def settings(self, scale: str) -> Settings:
        """What is set beside the preset of a scale."""
        settings = self.variant.small.get(scale, self.variant.settings)
        return SCALES[scale].settings.get(self.world, {}) | settings

    def config(self, scale: str) -> Config:
        """Its configuration at a scale."""
        return configure(self.variant.method, self.world, scale, self.settings(scale))


def cell_name(variant: str, world: str) -> str:
    """The name of a variant's run in a world."""
    return f"{variant}_{world}"


def _papers(name: str, label: str, method: str, feeds: tuple[str, ...], **settings: str) -> Variant:
    named = {key.replace("__", "."): value for key, value in settings.items()}
    return Variant(name, label, method, feeds, named, is_papers=True)


FIT: dict[str, Settings] = {
    "smirl": {"critics.truncation": "end", "reward.normaliser": "standard"},
    "disagreement": {"critics.truncation": "end", "reward.normaliser": "standard"},
    "rnd": {"critics.truncation": "end", "reward.normaliser": "standard"},
    "task": {"critics.truncation": "end"},
    "prime": {"critics.truncation": "end", "reward.truncation": "end"},
}
"""By method, what the reading nearest to the paper sets. It was chosen by looking at the paper's numbers
(docs/levels.md), so what comes near them under it is a fit."""


def _fitted(variant: Variant) -> Variant:
    """One of the paper's variants under the nearest reading."""
    return replace(
        variant,
        name=f"{variant.name}_fit",
        label=f"{variant.label}, nearest",
        feeds=(*(name for name in variant.feeds if name not in LITERAL_ONLY), "tableB"),
        settings=variant.settings | FIT[variant.method],
        is_papers=False,
    )


LITERAL = (
    Variant(
        "random",
        "Random walker",
        "random",
        ("table1", "figure1", *COURSE, "scorecard", "claims"),
        small={"quick": {"critics.batch": "1"}},  # its critics learn, and decide nothing
        is_papers=True,
    ),
    _papers("smirl", "SMIRL", "smirl", MAIN),
    _papers("disagreement", "Disagreement", "disagreement", MAIN),
    _papers("rnd", "RND", "rnd", (*MAIN, "tableD")),
    _papers("task", "Ext-DQN", "task", MAIN),
    _papers(
        "prime",
        "PRIME",
        "prime",
        (*MAIN, "table2", "table8", "figure2", "figure3", "tableC", "tableD"),
    ),
    _papers("prime_k1", "K = 1", "prime", ABLATION, critics__heads="1", reward__heads="1"),
    _papers("prime_no_gate", "gate off", "prime", ABLATION, reward__gate_weight="0"),
    Variant(
        "prime_k1_statistics",
        "K = 1, statistics only",
        "prime",
        ("table2", "tableB", "tableD"),
        {"reward.heads": "1"},
    ),
    Variant(
        "prime_no_penalty",
        "penalty off",
        "prime",
        ("table2", "tableB", "tableD", *COURSE),
        {"reward.aleatoric_weight": "0"},
    ),
    Variant(
        "prime_relu",
        "PRIME, ReLU embedding",
        "prime",
        ("tableA", "tableB", "figureA"),
        {"net.activation": "relu"},
    ),
    Variant(
        "task_relu",
        "Ext-DQN, ReLU embedding",
        "task",
        ("tableA", "tableB", "figureA"),
        {"net.activation": "relu"},
    ),
    Variant(
        "prime_nearest16",
        "PRIME, 16 nearest in the key",
        "prime",
        ("tableB", "tableD", "figureA"),
        {"reward.moments": "nearest16"},
    ),
    Variant(
        "prime_knn16",
        "PRIME, 16 nearest in φ",
        "prime",
        ("tableB", "tableD", "figureA"),
        {"reward.moments": "knn16"},
    ),
    Variant(
        "rnd_gamma",
        "RND, γ = 0.9",
        "rnd",
        ("tableA", "tableB", "figureA"),
        {"critics.gamma": "0.9"},
    ),
    Variant(
        "rnd_snapshot", "RND, frozen by window", "rnd_snapshot", ("tableB", "tableD", "figureA")
    ),
    Variant("count", "Counts", "count", ("table1", "tableB")),
    Variant("count_gamma", "Counts, γ = 0.9", "count", ("tableB",), {"critics.gamma": "0.9"}),
    Variant("count_heads5", "Counts, K = 5", "count", ("tableB",), {"critics.heads": "5"}),
    Variant(
        "count_heads5_gamma",
        "Counts, K = 5, γ = 0.9",
        "count",
        ("tableB",),
        {"critics.heads": "5", "critics.gamma": "0.9"},
    ),
    Variant("s_adapt", "S-Adapt", "s_adapt", ("tableB", "tableD", "figureA")),
    Variant("moss", "Mixture of Surprises", "moss", ("tableB", "tableD", "figureA")),
    Variant(
        "prime_window200",
        "PRIME, window 200",
        "prime",
        ("tableC",),
        {"window": "200"},
        seeds=5,
        small={"smoke": {"window": "100"}},
    ),
    Variant(
        "prime_window4000",
        "PRIME, window 4,000",
        "prime",
        ("tableC",),
        {"window": "4000"},
        seeds=5,
        small={
            "quick": {"window": "4000", "recent": "5000"},
            "smoke": {"window": "1000", "recent": "1000", "replay": "2000"},
        },
    ),
)
SHARED = Variant(
    "prime_fit_shared",
    "PRIME, nearest, shared trunk",
    "prime",
    ("tableB",),
    FIT["prime"] | {"critics.trunk": "shared"},
)
FITTED = tuple(_fitted(v) for v in LITERAL if v.is_papers and v.method in FIT)
VARIANTS: dict[str, Variant] = {variant.name: variant for variant in (*LITERAL, *FITTED, SHARED)}
FITS = {v.name.removesuffix("_fit"): v.name for v in FITTED} | {"random": "random"}
"""Which variant stands for which under the nearest reading; a random walker learns nothing."""
CELLS = {
    cell.name: cell for world in WORLDS for v in VARIANTS.values() for cell in [Cell(v, world)]
}


def select(names: list[str], scale: str) -> list[Cell]:
    """The cells that names of cells, variants, tables or figures ask for; a scale's without names."""
    if not names:
        return [cell for cell in CELLS.values() if cell.is_in(scale)]
    lower = {artefact.lower(): artefact for artefact in ARTEFACTS}
    chosen: set[str] = set()
    for name in names:
        short = canonical(name)
        artefact = lower.get(short.replace("_", ""))
        found = {
            cell.name
            for cell in CELLS.values()
            if short in (cell.name, cell.variant.name) or artefact in cell.variant.feeds
        }
        if not found and artefact is None:
            raise InputError(
                f"--only knows no {name!r}{hint(name, [*CELLS, *VARIANTS, *ARTEFACTS])}"
            )
        chosen |= found
    return [cell for cell in CELLS.values() if cell.name in chosen]
