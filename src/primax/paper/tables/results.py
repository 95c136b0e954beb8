"""The paper's result tables (1, 2, 5 to 8) from per-seed numbers, ours or its own."""

from collections.abc import Callable

from primax import stats
from primax.output.sheet import ABSENT, Sheet, bracket, plus_minus
from primax.paper.evidence import PAPERS_MEASURE, PAPERS_NAME, MissingError, Source, need
from primax.paper.experiments import VARIANTS
from primax.paper.published import published
from primax.paper.tables.comparisons import FAMILY, comparison_rows

METRICS = {
    "Butterflies catch/ep": ("butterflies", "average"),
    "Butterflies peak": ("butterflies", "peak"),
    "Maze peak": ("maze", "peak"),
}
MAIN = ("random", "smirl", "disagreement", "rnd", "task", "prime")
BESIDE_MAIN = ("count",)
ABLATIONS = ("prime", "prime_k1", "prime_no_gate")
BESIDE_ABLATIONS = ("prime_k1_statistics", "prime_no_penalty")
ALL = ("prime", "prime_k1", "prime_no_gate", "rnd", "smirl", "disagreement", "task")

Cell = Callable[[str, str, str], str]
"""(variant, world, measure) -> text."""


def shown(source: Source, write: Callable[[stats.Floats], str]) -> Cell:
    """A cell's text, or in brackets why there is none."""

    def cell(variant: str, world: str, measure: str) -> str:
        try:
            return write(need(source, variant, world, measure))
        except MissingError as error:
            return f"({error.why})"

    return cell


def mean_std(values: stats.Floats) -> str:
    """As in the paper's Table 1."""
    return plus_minus(*stats.mean_std(values))


def table1(source: Source) -> Sheet:
    """Point estimates of every method."""
    title = "Table 1. Mean ± std over seeds; the last row is not in the paper"
    sheet = _means("table1", title, source, (*MAIN, *BESIDE_MAIN), "main")
    walker = (
        "Random walker: the paper's std is over episodes, ours is over seeds. We take the paper's 0.00 "
        "on Maze to be the share of all episodes that reach the goal; ours is the peak of that share."
    )
    return Sheet(sheet.name, sheet.title, sheet.columns, sheet.rows, (walker,))


def table2(source: Source) -> Sheet:
    """The ablations, and two more."""
    title = "Table 2. Ablations; the last two rows are not in the paper"
    names = (*ABLATIONS, *BESIDE_ABLATIONS)
    return _means("table2", title, source, names, "ablations")


def _means(name: str, title: str, source: Source, variants: tuple[str, ...], group: str) -> Sheet:
    cell = shown(source, mean_std)
    rows = []
    for variant in variants:
        texts = [VARIANTS[variant].label]
        for world, measure in METRICS.values():
            texts += [cell(variant, world, measure), as_printed(group, variant, world, measure)]
        rows.append(tuple(texts))
    heads = [head for metric in METRICS for head in (metric, "paper")]
    return Sheet(name, title, ("method", *heads), tuple(rows))


def as_printed(group: str, variant: str, world: str, measure: str) -> str:
    """What the paper prints there."""
    metric = published()[group][world].get(PAPERS_MEASURE[measure], {})
    cell = metric.get(PAPERS_NAME.get(variant, variant))
    return ABSENT if cell is None else plus_minus(cell["mean"], cell.get("std", float("nan")))


def table5(source: Source) -> Sheet:
    """The paper's eleven comparisons."""
    columns, rows, notes = comparison_rows(source, FAMILY)
    return Sheet("table5", "Table 5. Pairwise comparisons", columns, rows, notes)


def table6(source: Source) -> Sheet:
    """IQM and its interval."""
    cell = shown(source, lambda x: f"{stats.iqm(x):.2f} {bracket(*stats.interval(x))}")
    paper = published()["iqm"]
    rows = []
    for variant in ALL:
        texts = [VARIANTS[variant].label]
        for world, measure in METRICS.values():
            given = paper[world][PAPERS_MEASURE[measure]][PAPERS_NAME.get(variant, variant)]
            printed = f"{given['iqm']:.2f} {bracket(*given['interval'])}"
            texts += [cell(variant, world, measure), printed]
        rows.append(tuple(texts))
    heads = [head for metric in METRICS for head in (metric, "paper")]
    title = "Table 6. IQM with stratified-bootstrap 95% interval"
    return Sheet("table6", title, ("method", *heads), tuple(rows))


def table7(source: Source) -> Sheet:
    """Every seed's value."""
    rows = [
        _seed_row(source, variant, world, measure, 2, metric)
        for metric, (world, measure) in METRICS.items()
        for variant in ALL
    ]
    columns = ("measure", "method", *map(str, range(15)))
    return Sheet("table7", "Table 7. Per-seed values", columns, tuple(rows))


def table8(source: Source) -> Sheet:
    """Mutual information of PRIME, by seed."""
    rows = []
    for world in ("butterflies", "maze"):
        row = _seed_row(source, "prime", world, "tail:mutual_information", 3, world)
        printed = published()["mutual_information"][world]
        summary = shown(source, lambda x: plus_minus(*stats.mean_std(x), 3))
        ours = summary("prime", world, "tail:mutual_information")
        rows.append((*row, ours, plus_minus(printed["mean"], printed["std"], 3)))
    columns = ("world", "method", *map(str, range(15)), "mean ± std", "paper")
    title = "Table 8. State-action mutual information of PRIME (tail-20% means, nats)"
    note = "A state-independent policy has zero; log 5 = 1.609 is the ceiling."
    return Sheet("table8", title, columns, tuple(rows), (note,))


def _seed_row(
    source: Source, variant: str, world: str, measure: str, digits: int, head: str
) -> tuple[str, ...]:
    """Seeds 0 to 14; a seed that was not run shows as such."""
    found = source.sample(variant, world, measure)
    label = VARIANTS[variant].label
    if found is None:
        return (head, label, f"({source.status(variant, world)})", *[ABSENT] * 14)
    values = dict(zip(found.seeds, found.values.tolist(), strict=True))
    return (head, label, *(f"{values[i]:.{digits}f}" if i in values else ABSENT for i in range(15)))
