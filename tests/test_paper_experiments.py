"""The runs as data: every one of them can be built, at every scale."""

import itertools

import jax
import jax.numpy as jnp
import pytest

from primax.agent.learner import Learner
from primax.config.fields import flatten
from primax.errors import InputError
from primax.methods import METHODS, build
from primax.paper.experiments import ARTEFACTS, CELLS, SCALES, VARIANTS, WORLDS, Cell, select
from primax.paper.tables import results
from primax.presets import PRESETS

ALL = [(cell, scale) for cell in CELLS.values() for scale in SCALES]


def test_every_cell_builds_at_every_scale():
    """Its settings fit each other and its preset, and world and reward can be made of them."""
    assert set(SCALES) == set(PRESETS)
    for cell, scale in ALL:
        config = cell.config(scale)
        world, reward = build(config)
        assert (config.method, world.horizon) == (cell.variant.method, 100) and reward
        assert cell.seeds(scale) == tuple(range(min(SCALES[scale].seeds, cell.variant.seeds)))


def distinct() -> list[tuple[Cell, str]]:
    """A cell for each program: variants that differ in real numbers alone share one. Worlds and
    scales take turns."""
    found: dict[tuple, tuple[Cell, str]] = {}
    turns = itertools.cycle(itertools.product(WORLDS, SCALES))
    for variant in VARIANTS.values():
        same = flatten(Cell(variant, "maze").config("smoke")).items()
        key = tuple((name, value) for name, value in same if not isinstance(value, float))
        if key not in found:
            world, scale = next(turns)
            found[key] = Cell(variant, world), scale
    return list(found.values())


@pytest.mark.slow
@pytest.mark.parametrize(("cell", "scale"), distinct(), ids=lambda x: getattr(x, "name", x))
def test_every_program_can_be_traced(cell, scale):
    """A window takes a state to a state of the same shapes, to the last leaf."""
    config = cell.config(scale)
    learner, clock = Learner(config, *build(config)), jax.ShapeDtypeStruct((), jnp.int32)
    state = jax.eval_shape(learner.init, jax.eval_shape(lambda: jax.random.key(0)), clock)
    after, metrics = jax.eval_shape(learner.window, state, clock)
    assert jax.tree.map(lambda x: (x.shape, x.dtype), after) == jax.tree.map(
        lambda x: (x.shape, x.dtype), state
    )
    assert metrics["window"] and metrics["episodes"]


def test_programs_are_told_apart_by_what_shapes_them():
    names = {cell.variant.name for cell, _ in distinct()}
    assert {"prime", "prime_k1", "prime_relu", "prime_knn16", "task", "moss"} <= names
    assert not {"prime_no_gate", "prime_no_penalty", "rnd_gamma"} & names


def test_the_papers_cells_are_all_there():
    theirs = {v.name for v in VARIANTS.values() if v.is_papers}
    assert theirs == {"prime", "prime_k1", "prime_no_gate", *results.MAIN}
    assert all(VARIANTS[name].seeds == 15 for name in theirs)
    assert len(CELLS) == 2 * len(VARIANTS)
    assert {feed for v in VARIANTS.values() for feed in v.feeds} <= set(ARTEFACTS)


def test_an_unknown_method_does_not_break_the_list(monkeypatch):
    monkeypatch.delitem(METHODS, "prime")
    assert not VARIANTS["prime"].is_available


def test_select():
    assert len(select([], "paper")) == len(select([], "smoke")) == len(CELLS)
    named = select(["Table 8"], "paper")
    worlds = ("butterflies", "maze")
    assert [cell.name for cell in named] == [
        f"{v}_{w}" for w in worlds for v in ("prime", "prime_fit")
    ]
    assert [cell.name for cell in select(["task_maze", "task-maze"], "paper")] == ["task_maze"]
    assert len(select(["rnd", "figureA"], "paper")) == 2 + 2 * 8 + 0
    assert select(["table3"], "paper") == []
    with pytest.raises(InputError, match="did you mean prime_maze"):
        select(["prime_mazes"], "paper")


def test_quick_is_the_papers_own_cells_and_what_is_named():
    assert {cell.variant.is_papers for cell in select([], "quick")} == {True}
    assert len(select([], "quick")) == 16
    assert [cell.name for cell in select(["moss_maze"], "quick")] == ["moss_maze"]


def test_prime_on_maze_is_as_long_at_quick_as_the_preset():
    """Shorter runs were seen to learn less surely; what else is shortened says so in its config."""
    assert CELLS["prime_maze"].config("quick").steps == 40_000
    assert {cell.config("quick").steps for cell in select([], "quick")} == {15_000, 40_000}
