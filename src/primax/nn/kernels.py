"""The trunk as three GPU kernels: `nets.Trunk` with its gradient, and little traffic to memory.

A program holds one network and a block of the minibatch, and walks down two columns of the grid.
Two cells see four columns, so a 3x3 convolution is three products of a window of four columns
with a band that holds the taps twice, one for each row it reaches. With the minibatch's axis inside
the rows every window is a plain tile. Both convolutions and the embedding are done in one pass:
what lies between them stays in registers, and goes to memory only where a gradient will need it.

Factors of products are rounded to `dtype`; sums, parameters and their gradients are float32.
Observations are data: they have no gradient.
"""

import warnings
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jaxtyping import Array, Float, Int, Shaped

BLOCK = 64
"""Rows of the minibatch a program holds."""
STRIPS = {"forward": 1, "second_back": 2, "first_back": 2}
"""Programs that share two columns of the grid."""
STAGES = {"forward": 3, "second_back": 2, "first_back": 3}
"""How far loads run ahead; measured, as all of these are."""
LANES = 64
"""That a window may have: at the paper's widths 128 did not fit."""
Windows = Shaped[Array, "_ _ _ _"]
"""[rows, pairs, block, lanes]: for two cells of a row, the columns that matter to them, with their
channels; zeros beyond the grid and where lanes are left over."""
Layer = tuple[Float[Array, "_ _"], Float[Array, " _"]]
"""Taps of a 3x3 convolution (row, column and channel they reach), and its bias."""


def trunk(
    planes: Float[Array, "batch rows cols c"],
    first: Layer,
    second: Layer,
    embed: Float[Array, "cells_e embedding"],
    dtype: Any,
    interpret: bool = False,
) -> Float[Array, "batch embedding"]:
    """Two 3x3 convolutions with ReLU, flattened, times `embed`."""
    batch, rows, cols, channels = planes.shape
    num = embed.shape[1]
    first, second, embed = _filled((rows, cols), first, second, embed)
    down, across = _even(rows), _even(cols)
    block = min(BLOCK, max(16, _power(batch)))
    beyond = ((0, -batch % block), (2, 2 + down - rows), (2, 2 + across - cols), (0, 0))
    x = jnp.pad(planes.astype(dtype), beyond).reshape(-1, block, down + 4, (across + 4) * channels)
    six = [x[..., i * channels : (i + 6) * channels] for i in range(0, across, 2)]
    beside = (0, _lanes(channels) - 6 * channels)
    windows = jnp.pad(jnp.stack(six, axis=3), (*[(0, 0)] * 4, beside))
    some = jax.vmap(partial(_trunk, interpret, (rows, cols)), in_axes=(0, None, None, None))
    out = some(jnp.moveaxis(windows, 1, 3), first, second, embed)
    return out.reshape(-1, embed.shape[1])[:batch, :num]


def _lanes(channels: int) -> int:
    """Of a window: six columns, filled up to what a product takes."""
    return max(16, _power(6 * channels))


def _filled(
    grid: tuple[int, int], first: Layer, second: Layer, embed: Float[Array, "cells_e embedding"]
) -> tuple[Layer, Layer, Float[Array, "_ _"]]:
    """The same trunk over a grid of even sides with widths that are powers of two, by zeros.

    A filter of zeros gives zero and is given no gradient. Nor is a cell beyond the grid, where the
    kernels keep the first convolution at zero and the embedding has no weight.
    """
    (rows, cols), d, e = grid, first[1].size, second[1].size
    num, more_d, more_e = embed.shape[1], _power(d) - d, _power(e) - e
    more = (_even(rows) - rows, _even(cols) - cols, more_e, _power(num) - num)
    return (
        (_longer(first[0], first[0].shape, 0, more_d), _longer(first[1], (d,), more_d)),
        (_longer(second[0], (9, d, e), 0, more_d, more_e), _longer(second[1], (e,), more_e)),
        _longer(embed, (rows, cols, e, num), *more),
    )


def _longer(x: Float[Array, "..."], shape: tuple[int, ...], *more: int) -> Float[Array, "..."]:
    """With zeros at the end of each axis that it has in this shape."""
    if not any(more):
        return x
    filled = jnp.pad(x.reshape(shape), [(0, num) for num in more])
    return filled.reshape(-1, filled.shape[-1]) if x.ndim == 2 else filled


def _even(size: int) -> int:
    """The next even number."""
    return size + size % 2


@cache
def works(
    rows: int = 10,
    cols: int = 10,
    channels: int = 4,
    widths: tuple[int, ...] = (16, 32, 64),
    dtype: str = "float16",
) -> bool:
    """Whether the kernels run on this machine's device at these sizes; tried once a process.

    Narrow layers are not worth filling up.
    """
    if jax.default_backend() != "gpu" or widths[-1] < 16 or min(widths) < 8:
        return False
    if _lanes(channels) > LANES:
        return _refused(f"{channels} planes, at most {LANES // 6} fit")
    first, second, embedding = widths
    shapes = [(9 * channels, first), (first,), (9 * first, second), (second,)]
    shapes.append((rows * cols * second, embedding))
    params = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]

    def loss(params: list, batch: int) -> Float[Array, ""]:
        weight1, bias1, weight2, bias2, embed = params
        planes = jnp.ones((batch, rows, cols, channels))
        return jnp.sum(trunk(planes, (weight1, bias1), (weight2, bias2), embed, dtype))

    try:
        # Compiled and not run: this may be asked while something else is being traced.
        jax.jit(jax.grad(partial(loss, batch=BLOCK))).lower(params).compile()
        jax.jit(partial(loss, batch=1)).lower(params).compile()
        return True
    except Exception as error:  # whatever it is, there is another way
        return _refused(f"{type(error).__name__}: {str(error).splitlines()[0]}")


def _refused(reason: str) -> bool:
    warnings.warn(
        "the GPU kernels do not work for this size or device, so networks run as plain matrix "
        f"products, which is slower ({reason})",
        stacklevel=3,
    )
    return False


def _power(size: int) -> int:
    """The next power of two."""
    return 1 << (size - 1).bit_length()


class _Sizes:
    """What the kernels need to know of a trunk; `grid` has the rows and columns that are there."""

    def __init__(self, grid: tuple[int, int], x: Windows, first: Layer, second: Layer, embed: Any):
        self.grid = grid
        self.rows, self.pairs, self.block, self.lanes = x.shape[0] - 4, *x.shape[1:]
        self.channels, self.d = first[0].shape[0] // 9, first[0].shape[1]
        self.e, self.embedding = second[0].shape[1], embed.shape[1]
        self.dtype = x.dtype

    def like(self, *shape: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, self.dtype)

    @property
    def hidden(self) -> jax.ShapeDtypeStruct:
        """The first convolution, four columns a tile: two cells and what lies beside them."""
        return self.like(self.rows + 2, self.pairs, self.block, 4 * self.d)

    @property
    def kept(self) -> jax.ShapeDtypeStruct:
        """The second convolution, two cells a tile."""
        return self.like(self.rows * self.pairs, self.block, 2 * self.e)

    def grads(self, name: str, channels: int, width: int) -> list[jax.ShapeDtypeStruct]:
        """Where each program leaves its part of a layer's gradient, of its two cells apart."""
        shapes = ((9 * channels, width), (width,))
        num = self.pairs * STRIPS[name]
        return [jax.ShapeDtypeStruct((num, 2, *shape), jnp.float32) for shape in shapes]


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _trunk(interpret: bool, grid, x: Windows, first: Layer, second: Layer, embed):
    return _forward(interpret, grid, x, first, second, embed, is_kept=False)[0]


def _forward(interpret, grid, x: Windows, first: Layer, second: Layer, embed, is_kept=True):
    sizes = _Sizes(grid, x, first, second, embed)
    pairs = embed.reshape(-1, 2 * sizes.e, sizes.embedding)
    parts, *kept = _both(sizes, is_kept, interpret)(x, *first, *second, pairs)
    return jnp.sum(parts, axis=0), (x, first, second, embed, pairs, *kept)


def _backward(interpret: bool, grid, saved: tuple, d_out: Float[Array, "block embedding"]):
    """Scaled by a power of two on the way: float16 is as fine as TF32 but not as wide."""
    x, first, second, embed, pairs, hidden, kept = saved
    sizes = _Sizes(grid, x, first, second, embed)
    power = -jnp.frexp(jnp.max(jnp.abs(d_out)))[1]
    scaled = jnp.ldexp(d_out, power).astype(x.dtype)
    d_pairs, d_kept, *d_second = _second_back(sizes, interpret)(hidden, kept, pairs, scaled)
    d_first = _first_back(sizes, interpret)(x, hidden, d_kept, second[0])
    back = jnp.ldexp(jnp.float32(1), -power)
    d_first, d_second = (tuple(jnp.sum(p, (0, 1)) * back for p in d) for d in (d_first, d_second))
    return jnp.zeros_like(x), d_first, d_second, d_pairs.reshape(embed.shape) * back


_trunk.defvjp(_forward, _backward)


def _call(kernel: Any, sizes: _Sizes, outputs: list, interpret: bool):
    # Pallas may give its Triton lowering up: then `works` says no, and the rest does not notice.
    from jax.experimental.pallas import triton

    name = kernel.__name__
    return pl.pallas_call(
        kernel,
        outputs,
        grid=(sizes.pairs, STRIPS[name]),
        interpret=interpret,
        compiler_params=triton.CompilerParams(
            num_warps=4 if sizes.block == BLOCK else 2, num_stages=STAGES[name]
        ),
        name=name,
    )


def _load(ref: Any, mask: Any) -> Array:
    from jax.experimental.pallas import triton

    return triton.load(ref, mask=mask, other=0.0)


def _store(ref: Any, value: Array, mask: Any) -> None:
    from jax.experimental.pallas import triton

    triton.store(ref, value, mask=mask)


def _strip(name: str, rows: int) -> tuple[Any, Any, int]:
    """This program's pair of columns, its first row, and how many rows it has."""
    strip = rows // STRIPS[name]
    return pl.program_id(0), pl.program_id(1) * strip, strip


def _dot(a: Shaped[Array, "m k"], b: Shaped[Array, "k n"]) -> Float[Array, "m n"]:
    return jnp.dot(a, b.astype(a.dtype), preferred_element_type=jnp.float32)


def _places(took: int, c: int, gave: int, d: int) -> tuple[Int[Array, "took gave_d"], ...]:
    """Of every entry of a band: column and channel it takes from, column and channel it gives to."""
    from_, to = (jax.lax.broadcasted_iota(jnp.int32, (took, gave * d), i) for i in (0, 1))
    return from_ // c, from_ % c, to // d, to % d


def _taps(shape: tuple[int, int, int, int], reach: int, skip: int = 0) -> tuple[Array, ...]:
    """Of every entry of a band, for one of three rows it reaches: its tap, and whether it has one."""
    took, c, gave, _ = _places(*shape)
    tap = took - gave - skip
    return (3 * reach + tap) * shape[1] + c, (tap >= 0) & (tap < 3)


def _band(ref: Any, reach: int, shape: tuple[int, int, int, int], dtype: Any):
    """Taps as they act on some columns (lanes, channels) to give fewer (columns, channels)."""
    tap, is_one = _taps(shape, reach)
    return _load(ref.at[tap, _places(*shape)[3]], is_one).astype(dtype)


def _turned(ref: Any, reach: int, d: int, e: int, dtype: Any):
    """The band that carries gradients back; read the way it lies in memory."""
    to, channel, from_, width = _places(2 * d, d, 4, e)
    tap = from_ - to
    at = (8 - 3 * reach - tap) * d + channel
    return _load(ref.at[at, width], (tap >= 0) & (tap < 3)).astype(dtype).T


def _repeated(bias_ref: Any, times: int) -> Float[Array, "1 _"]:
    """A layer's bias, once for each of the columns it gives."""
    width = bias_ref.shape[0]
    lane = jax.lax.broadcasted_iota(jnp.int32, (1, times * width), 1)
    return bias_ref[lane % width]


def _walk(tile: Any, band: list, top: Any, rows: int, emit: Any, start: Any) -> Any:
    """Convolves tiles of consecutive rows; `emit(row, sums, carry)` takes each row."""
    above, here = tile(top - 1), tile(top)
    now = _dot(above, band[0]) + _dot(here, band[1])

    def step(row, carry):
        carry, now, later = carry
        below = tile(row + 1)
        carry = emit(row, now + _dot(below, band[2]), carry)
        return carry, later + _dot(below, band[1]), _dot(below, band[0])

    return jax.lax.fori_loop(top, top + rows, step, (start, now, _dot(here, band[0])))[0]


def _both(sizes: _Sizes, is_kept: bool, interpret: bool):
    """Both convolutions with ReLU times their part of the embedding, a sum a program."""
    d, e = sizes.d, sizes.e

    def forward(x_ref, w1_ref, b1_ref, w2_ref, b2_ref, pairs_ref, out_ref, *kept_refs):
        pair, top, strip = _strip("forward", sizes.rows)
        shapes = ((sizes.lanes, sizes.channels, 4, d), (4 * d, d, 2, e))
        first, second = (
            [_band(ref, i, shape, sizes.dtype) for i in range(3)]
            for ref, shape in zip((w1_ref, w2_ref), shapes, strict=True)
        )
        bias1, bias2 = _repeated(b1_ref, 4), _repeated(b2_ref, 2)
        col = 2 * pair - 1 + jax.lax.broadcasted_iota(jnp.int32, (1, 4 * d), 1) // d
        is_in = (col >= 0) & (col < sizes.grid[1])

        def hidden(row):
            """Four columns of the first convolution, zero beyond the grid."""
            sums = [_dot(x_ref[row + 1 + i, pair], first[i]) for i in range(3)]
            z = jax.nn.relu(sums[0] + sums[1] + sums[2] + bias1)
            z = jnp.where(is_in & (row >= 0) & (row < sizes.grid[0]), z, 0.0).astype(sizes.dtype)
            for ref in kept_refs[:1]:
                ref[row + 1, pair] = z
            return z

        def emit(row, sums, total):
            z = jax.nn.relu(sums + bias2).astype(sizes.dtype)
            for ref in kept_refs[1:]:
                ref[row * sizes.pairs + pair] = z
            return total + _dot(z, pairs_ref[row * sizes.pairs + pair])

        zero = jnp.zeros((sizes.block, sizes.embedding), jnp.float32)
        at = pair * STRIPS["forward"] + pl.program_id(1)
        out_ref[at] = _walk(hidden, second, top, strip, emit, zero)

    parts = (sizes.pairs * STRIPS["forward"], sizes.block, sizes.embedding)
    outputs = [jax.ShapeDtypeStruct(parts, jnp.float32)]
    return _call(forward, sizes, outputs + [sizes.hidden, sizes.kept] * is_kept, interpret)


def _zeros(four: int, two: int) -> tuple:
    return *(jnp.zeros((four, two), jnp.float32) for _ in range(3)), jnp.zeros(two, jnp.float32)


def _leave(name: str, sums: tuple, taps: list, at: tuple, taps_ref: Any, bias_ref: Any) -> None:
    """A program's part of a layer's gradient, of its two cells apart, from that of its bands."""
    part, (cell, d) = pl.program_id(0) * STRIPS[name] + pl.program_id(1), at
    for i, (tap, is_one) in enumerate(taps):
        _store(taps_ref.at[jnp.full_like(cell, part), cell, tap, d], sums[i], is_one)
    lane = jax.lax.broadcasted_iota(jnp.int32, sums[3].shape, 0)
    width = bias_ref.shape[2]
    bias_ref[jnp.full_like(lane, part), lane // width, lane % width] = sums[3]


def _second_back(sizes: _Sizes, interpret: bool):
    """Gradients of the embedding, of the second convolution's sums, of its taps and its bias."""
    d, e = sizes.d, sizes.e

    def second_back(hidden_ref, kept_ref, pairs_ref, out_ref, dp_ref, dk_ref, dw_ref, db_ref):
        pair, top, strip = _strip("second_back", sizes.rows)
        _border(dk_ref, pair, top, strip, e)

        def step(row, sums):
            at, g = row * sizes.pairs + pair, out_ref[...]
            z = kept_ref[at]
            dp_ref[at] = _dot(z.T, g)
            dz = jnp.where(z > 0, _dot(g, pairs_ref[at].T), 0.0)
            bias = sums[3] + jnp.sum(dz, axis=0)
            dz = dz.astype(z.dtype)
            dk_ref[row + 1, :, pl.ds((2 * pair + 1) * e, 2 * e)] = dz
            # Read again in place of carried: so they never pass through registers.
            tiles = [hidden_ref[row + i, pair] for i in range(3)]
            return *(sums[i] + _dot(t.T, dz) for i, t in enumerate(tiles)), bias

        sums = jax.lax.fori_loop(top, top + strip, step, _zeros(4 * d, 2 * e))
        shape = (4 * d, d, 2, e)
        taps = [_taps(shape, i) for i in range(3)]
        _leave("second_back", sums, taps, _places(*shape)[2:], dw_ref, db_ref)

    d_pairs = (sizes.rows * sizes.pairs, 2 * e, sizes.embedding)
    d_kept = sizes.like(sizes.rows + 2, sizes.block, (2 * sizes.pairs + 2) * e)
    outputs = [jax.ShapeDtypeStruct(d_pairs, jnp.float32), d_kept]
    return _call(second_back, sizes, outputs + sizes.grads("second_back", d, e), interpret)


def _border(ref: Any, pair: Any, top: Any, rows: int, width: int) -> None:
    """Zeros around the grid, each program its part."""
    last = (ref.shape[0] - 2, ref.shape[2] // width - 2)
    zero = jnp.zeros((ref.shape[1], width), ref.dtype)

    def clear(row, column):
        ref[row, :, pl.ds(column * width, width)] = zero

    for is_there, column in ((pair == 0, 0), (2 * pair + 2 == last[1], last[1] + 1)):

        @pl.when(is_there)
        def _(column=column):
            jax.lax.fori_loop(top, top + rows + 2, lambda row, _: clear(row, column), None)

    for is_there, row in ((top == 0, 0), (top + rows == last[0], last[0] + 1)):

        @pl.when(is_there)
        def _(row=row):
            for i in (1, 2):
                clear(row, 2 * pair + i)


def _first_back(sizes: _Sizes, interpret: bool):
    """Gradients of the first convolution's taps and bias; its own sums' never leave registers."""
    d, e = sizes.d, sizes.e

    def first_back(x_ref, hidden_ref, dk_ref, w2_ref, dw_ref, db_ref):
        pair, top, strip = _strip("first_back", sizes.rows)
        band = [_turned(w2_ref, i, d, e, sizes.dtype) for i in range(3)]
        tile = lambda row: dk_ref[row + 1, :, pl.ds(2 * pair * e, 4 * e)]  # noqa: E731
        # Two cells see four of a window's six columns: taken alone where a tile can be so wide.
        four = 4 * sizes.channels
        start, lanes = (sizes.channels, four) if four == max(16, _power(four)) else (0, sizes.lanes)

        def emit(row, dz, sums):
            z = hidden_ref[row + 1, pair, :, pl.ds(d, 2 * d)]
            dz = jnp.where(z > 0, dz, 0.0)
            bias = sums[3] + jnp.sum(dz, axis=0)
            dz = dz.astype(sizes.dtype)
            tiles = [x_ref[row + 1 + i, pair, :, pl.ds(start, lanes)] for i in range(3)]
            return *(sums[i] + _dot(t.T, dz) for i, t in enumerate(tiles)), bias

        sums = _walk(tile, band, top, strip, emit, _zeros(lanes, 2 * d))
        shape = (lanes, sizes.channels, 2, d)
        taps = [_taps(shape, i, skip=int(start == 0)) for i in range(3)]
        _leave("first_back", sums, taps, _places(*shape)[2:], dw_ref, db_ref)

    return _call(first_back, sizes, sizes.grads("first_back", sizes.channels, d), interpret)
