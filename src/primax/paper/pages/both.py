"""Tables by name, under the text taken literally and, where it was run, under the nearest reading too."""

from collections.abc import Callable

from primax.output.sheet import Sheet
from primax.paper.evidence import Nearest, Runs
from primax.paper.tables import beside, comparisons, course, readings, results
from primax.paper.tables.results import MAIN

TABLES: dict[str, Callable[[Runs], Sheet]] = {
    "table1": results.table1,
    "table2": results.table2,
    "table3": beside.table3,
    "table4": beside.table4,
    "table5": results.table5,
    "table6": results.table6,
    "table7": results.table7,
    "table8": results.table8,
    "table9": lambda runs: beside.table9(),
    "tableA": comparisons.completed,
    "tableB": beside.table_b,
    "tableC": beside.table_c,
    "tableD": comparisons.rest,
    "tableE": course.table_e,
    "tableF": course.table_f,
}
INTERLEAVED = ("table1", "table2", "table6")
"""Under both readings: in columns; in rows; in rows that it has anyway; or by a note."""
STACKED = ("table5", "table7", "table8", "tableE", "tableF")
NOTED = ("tableB",)
TOLD = {"table3": ("prime",), "table4": MAIN[1:5]}


def nearest_of(runs: Runs) -> Nearest | None:
    """The same runs under the nearest reading, if there are any."""
    nearest = Nearest(runs)
    return nearest if nearest.is_there else None


def table(name: str, runs: Runs, nearest: Nearest | None) -> Sheet:
    """A table by name; where there are runs of the nearest reading, under both."""
    make = TABLES[name]
    if nearest is None or name not in (*INTERLEAVED, *STACKED, *NOTED, *TOLD):
        return make(runs)
    if name in NOTED:
        return readings.noted(make, runs)
    if name in TOLD:
        return readings.told(make, TOLD[name], runs)
    put = readings.interleaved if name in INTERLEAVED else readings.stacked
    return put(make, runs, nearest)
