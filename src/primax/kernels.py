"""The trunk as four GPU kernels: `nets.Trunk` with its gradient, and little traffic to memory.

A program holds one network and a block of the minibatch, and walks down two columns of the grid.
Two cells see four columns, so a 3x3 convolution is three products of a window of four columns
with a band that holds the kernel twice, one for each row it reaches. With the minibatch's axis
inside the rows every window is a plain tile; with a border of zeros around the grid no tile needs a
mask. The second convolution is multiplied by its part of the embedding while still in registers.

Factors of products are rounded to `dtype`; sums, parameters and their gradients are float32.
Observations are data: they have no gradient.
"""

import warnings
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jaxtyping import Array, Float, Shaped

BLOCK = 64
"""Rows of the minibatch a program holds."""
STRIPS = 2
"""Programs that share two columns of the grid."""
Padded = Shaped[Array, "_ _ _"]
"""[rows and two, block, (columns and two) times channels], zero at the border."""
Band = Shaped[Array, "3 _ _"]
"""[rows a kernel reaches, four columns times channels, two columns times channels]."""


def trunk(
    planes: Float[Array, "batch rows cols c"],
    first: tuple[Float[Array, "nine_c d"], Float[Array, " d"]],
    second: tuple[Float[Array, "nine_d e"], Float[Array, " e"]],
    embed: Float[Array, "cells_e embedding"],
    dtype: Any,
    interpret: bool = False,
) -> Float[Array, "batch embedding"]:
    """Two 3x3 convolutions with ReLU, flattened, times `embed`."""
    bands = [_band(_taps(weight)) for weight, _ in (first, second)]
    biases = [jnp.tile(bias, 2) for _, bias in (first, second)]
    batch, _, _, channels = planes.shape
    block = min(BLOCK, max(16, _power(batch)))
    missing = bands[0].shape[1] // 4 - channels
    x = jnp.pad(planes, ((0, -batch % block), (1, 1), (1, 1), (0, missing)))
    x = x.astype(dtype).reshape(-1, block, x.shape[1], x.shape[2] * x.shape[3])
    pairs = embed.reshape(-1, bands[1].shape[2], embed.shape[1])
    run = partial(_trunk, interpret)
    some = jax.vmap(run, in_axes=(0, *[None] * 5))
    out = some(jnp.swapaxes(x, 1, 2), bands[0], biases[0], bands[1], biases[1], pairs)
    return out.reshape(-1, embed.shape[1])[:batch]


def fits(rows: int, cols: int, widths: tuple[int, ...]) -> bool:
    """Whether the kernels can take a grid of this size and layers so wide."""
    is_even = cols % 2 == 0 and rows % STRIPS == 0
    return is_even and widths[-1] >= 16 and all(w >= 8 and w == _power(w) for w in widths)


@cache
def works(
    rows: int = 10,
    cols: int = 10,
    channels: int = 4,
    widths: tuple[int, ...] = (16, 32, 64),
    dtype: str = "float16",
) -> bool:
    """Whether the kernels compile for this machine's device at these sizes; tried once a process."""
    if jax.default_backend() != "gpu":
        return False
    first, second, embedding = widths
    shapes = [(9 * channels, first), (first,), (9 * first, second), (second,)]
    shapes.append((rows * cols * second, embedding))
    params = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]

    def loss(params: list) -> Float[Array, ""]:
        weight1, bias1, weight2, bias2, embed = params
        planes = jnp.ones((BLOCK, rows, cols, channels))
        return jnp.sum(trunk(planes, (weight1, bias1), (weight2, bias2), embed, dtype))

    try:
        # Compiled and not run: this may be asked while something else is being traced.
        jax.jit(jax.grad(loss)).lower(params).compile()
        return True
    except Exception as error:  # whatever it is, there is another way
        reason = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        warnings.warn(f"networks run as plain products, kernels fail here ({reason})", stacklevel=2)
        return False


def _power(size: int) -> int:
    """The next power of two."""
    return 1 << (size - 1).bit_length()


def _taps(weight: Float[Array, "nine_c d"]) -> Float[Array, "3 3 c d"]:
    """Taps of a layer on 3x3 patches; channels filled up with zeros to a power of two."""
    taps = weight.reshape(3, 3, -1, weight.shape[1])
    channels = max(4, _power(taps.shape[2]))
    return jnp.pad(taps, ((0, 0), (0, 0), (0, channels - taps.shape[2]), (0, 0)))


def _band(taps: Float[Array, "3 3 c d"]) -> Band:
    """Taps as they act on four columns to give two: a matrix for each of three rows."""
    pads = [((0, 0), (left, 1 - left), (0, 0), (0, 0)) for left in (0, 1)]
    both = jnp.stack([jnp.pad(taps, pad) for pad in pads], axis=3)
    return both.reshape(3, 4 * taps.shape[2], -1)


def _turned(band: Band) -> Band:
    """The band of the convolution that carries gradients back."""
    four, two = band.shape[1:]
    taps = band.reshape(3, 4, four // 4, 2, two // 2)[:, :3, :, 0]
    return _band(jnp.swapaxes(taps[::-1, ::-1], 2, 3))


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _trunk(interpret: bool, x: Padded, band1: Band, bias1, band2: Band, bias2, pairs):
    hidden = _first(interpret, x, band1, bias1)
    return jnp.sum(_second(interpret, hidden, band2, bias2, pairs, is_kept=False), axis=0)


def _forward(interpret: bool, x: Padded, band1: Band, bias1, band2: Band, bias2, pairs):
    hidden = _first(interpret, x, band1, bias1)
    parts, kept = _second(interpret, hidden, band2, bias2, pairs, is_kept=True)
    return jnp.sum(parts, axis=0), (x, hidden, kept, band2, pairs)


def _backward(interpret: bool, saved: tuple, d_out: Float[Array, "block embedding"]):
    """Scaled by a power of two on the way: float16 is as fine as TF32 but not as wide."""
    x, hidden, kept, band2, pairs = saved
    power = -jnp.frexp(jnp.max(jnp.abs(d_out)))[1]
    scaled = jnp.ldexp(d_out, power).astype(x.dtype)
    d_pairs, d_kept, d_band2, d_bias2 = _second_back(interpret, hidden, kept, pairs, scaled)
    d_band1, d_bias1 = _first_back(interpret, x, hidden, d_kept, _turned(band2))
    grads = [jnp.sum(part, axis=0) for part in (d_band1, d_bias1, d_band2, d_bias2)]
    back = jnp.ldexp(jnp.float32(1), -power)
    return jnp.zeros_like(x), *(grad * back for grad in (*grads, d_pairs))


_trunk.defvjp(_forward, _backward)


def _call(kernel: Any, grid: tuple[int, ...], outputs: list, interpret: bool):
    # Pallas may give its Triton lowering up: then `works` says no, and the rest does not notice.
    from jax.experimental.pallas import triton

    params = triton.CompilerParams(num_warps=4, num_stages=3)
    name = kernel.__name__
    return pl.pallas_call(
        kernel, outputs, grid=grid, interpret=interpret, compiler_params=params, name=name
    )


def _dot(a: Shaped[Array, "m k"], b: Shaped[Array, "k n"]) -> Float[Array, "m n"]:
    return jnp.dot(a, b.astype(a.dtype), preferred_element_type=jnp.float32)


def _window(ref: Any, row: Any, pair: Any, width: int) -> Shaped[Array, "block four"]:
    """Four columns of a padded row, from the one left of a pair of cells; `width` channels each."""
    return ref[row, :, pl.ds(2 * pair * width, 4 * width)]


def _walk(ref: Any, band_ref: Any, rows: int, emit: Any, start: Any) -> Any:
    """Convolves a program's two columns of its strip; `emit(row, sums, carry)` takes each row."""
    pair, top = pl.program_id(0), pl.program_id(1) * rows
    dtype = ref.dtype
    band = [band_ref[i].astype(dtype) for i in range(3)]
    tile = partial(_window, ref, pair=pair, width=band_ref.shape[1] // 4)
    above, here = tile(top), tile(top + 1)
    ahead = _dot(above, band[0]) + _dot(here, band[1])

    def step(row, carry):
        carry, now, later = carry
        here = tile(row + 2)
        carry = emit(row, now + _dot(here, band[2]), carry)
        return carry, later + _dot(here, band[1]), _dot(here, band[0])

    return jax.lax.fori_loop(top, top + rows, step, (start, ahead, _dot(here, band[0])))[0]


def _border(ref: Any, rows: int, width: int) -> None:
    """Zeros around the grid, each program its part."""
    pair, top = pl.program_id(0), pl.program_id(1) * rows
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


def _sizes(padded: Padded, width: int) -> tuple[tuple[int, int], int, int, int]:
    """A grid of programs, and rows of a strip, rows in all and pairs of columns in all."""
    rows, pairs = padded.shape[0] - 2, (padded.shape[2] // width - 2) // 2
    return (pairs, STRIPS), rows // STRIPS, rows, pairs


def _first(interpret: bool, x: Padded, band: Band, bias: Float[Array, " two_d"]) -> Padded:
    """The first convolution with ReLU, in the layout the second reads."""
    grid, strip, rows, pairs = _sizes(x, band.shape[1] // 4)
    two = band.shape[2]

    def first(x_ref, band_ref, bias_ref, out_ref):
        bias = bias_ref[...]
        at = pl.ds((2 * pl.program_id(0) + 1) * (two // 2), two)
        _border(out_ref, strip, two // 2)

        def emit(row, sums, carry):
            z = jax.nn.relu(sums + bias[None])
            out_ref[row + 1, :, at] = z.astype(out_ref.dtype)
            return carry

        _walk(x_ref, band_ref, strip, emit, 0)

    out = jax.ShapeDtypeStruct((rows + 2, x.shape[1], (pairs + 1) * two), x.dtype)
    return _call(first, grid, [out], interpret)(x, band, bias)[0]


def _second(interpret: bool, hidden: Padded, band: Band, bias, pairs, is_kept: bool):
    """The second convolution with ReLU times its part of the embedding, a sum a program."""
    grid, strip, _, per_row = _sizes(hidden, band.shape[1] // 4)
    block, (two, embedding) = hidden.shape[1], pairs.shape[1:]

    def second(hidden_ref, band_ref, bias_ref, pairs_ref, out_ref, *kept_ref):
        bias, pair = bias_ref[...], pl.program_id(0)

        def emit(row, sums, total):
            z = jax.nn.relu(sums + bias[None]).astype(hidden_ref.dtype)
            for ref in kept_ref:
                ref[row * per_row + pair] = z
            return total + _dot(z, pairs_ref[row * per_row + pair])

        zero = jnp.zeros((block, embedding), jnp.float32)
        total = _walk(hidden_ref, band_ref, strip, emit, zero)
        out_ref[pair * STRIPS + pl.program_id(1)] = total

    parts = jax.ShapeDtypeStruct((per_row * STRIPS, block, embedding), jnp.float32)
    kept = jax.ShapeDtypeStruct((pairs.shape[0], block, two), hidden.dtype)
    call = _call(second, grid, [parts, kept][: 1 + is_kept], interpret)
    outs = call(hidden, band, bias, pairs)
    return outs if is_kept else outs[0]


def _parts(num: int, four: int, two: int) -> list:
    """Where each program leaves its part of a band's and a bias's gradient."""
    return [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((num, 3, four, two), (num, two))]


def _zeros(four: int, two: int) -> tuple:
    return *(jnp.zeros((four, two), jnp.float32) for _ in range(3)), jnp.zeros(two, jnp.float32)


def _leave(sums: tuple, band_ref: Any, bias_ref: Any) -> None:
    at = pl.program_id(0) * STRIPS + pl.program_id(1)
    for i in range(3):
        band_ref[at, i] = sums[i]
    bias_ref[at] = sums[3]


def _second_back(interpret: bool, hidden: Padded, kept, pairs, out):
    """Gradients of the embedding, of the second convolution's sums, of its band and its bias."""
    two = pairs.shape[1]
    per_row = pairs.shape[0] // (hidden.shape[0] - 2)
    four = 2 * hidden.shape[2] // (per_row + 1)
    grid, strip, rows, _ = _sizes(hidden, four // 4)

    def second_back(hidden_ref, kept_ref, pairs_ref, out_ref, dp_ref, dk_ref, db_ref, ds_ref):
        pair, top = pl.program_id(0), pl.program_id(1) * strip
        _border(dk_ref, strip, two // 2)
        tile = partial(_window, hidden_ref, pair=pair, width=four // 4)

        def step(row, carry):
            sums, above, here = carry
            at, below, g = row * per_row + pair, tile(row + 2), out_ref[...]
            z = kept_ref[at]
            dp_ref[at] = _dot(z.T, g)
            d = jnp.where(z > 0, _dot(g, pairs_ref[at].T), 0.0)
            bias = sums[3] + jnp.sum(d, axis=0)
            d = d.astype(z.dtype)
            dk_ref[row + 1, :, pl.ds((2 * pair + 1) * (two // 2), two)] = d
            band = [sums[i] + _dot(t.T, d) for i, t in enumerate((above, here, below))]
            return (*band, bias), here, below

        start = (_zeros(four, two), tile(top), tile(top + 1))
        sums, _, _ = jax.lax.fori_loop(top, top + strip, step, start)
        _leave(sums, db_ref, ds_ref)

    d_kept = (rows + 2, hidden.shape[1], (per_row + 1) * two)
    mine = [
        jax.ShapeDtypeStruct(pairs.shape, jnp.float32),
        jax.ShapeDtypeStruct(d_kept, hidden.dtype),
    ]
    return _call(second_back, grid, mine + _parts(per_row * STRIPS, four, two), interpret)(
        hidden, kept, pairs, out
    )


def _first_back(interpret: bool, x: Padded, hidden: Padded, d_kept: Padded, band: Band):
    """Gradients of the first convolution's band and bias; its own sums' never leave registers."""
    grid, strip, _, per_row = _sizes(d_kept, band.shape[1] // 4)
    two, four = band.shape[2], 2 * x.shape[2] // (per_row + 1)

    def first_back(x_ref, hidden_ref, dk_ref, band_ref, db_ref, ds_ref):
        pair = pl.program_id(0)
        at = pl.ds((2 * pair + 1) * (two // 2), two)

        def emit(row, d, sums):
            d = jnp.where(hidden_ref[row + 1, :, at] > 0, d, 0.0)
            bias = sums[3] + jnp.sum(d, axis=0)
            d = d.astype(x_ref.dtype)
            tiles = [_window(x_ref, row + i, pair, four // 4) for i in range(3)]
            return *(sums[i] + _dot(t.T, d) for i, t in enumerate(tiles)), bias

        sums = _walk(dk_ref, band_ref, strip, emit, _zeros(four, two))
        _leave(sums, db_ref, ds_ref)

    outs = _parts(per_row * STRIPS, four, two)
    return _call(first_back, grid, outs, interpret)(x, hidden, d_kept, band)
