"""Prop. 5: kernel estimates of a conditional mean and variance, on a process known to mix."""

import numpy as np
import scipy  # which loads its parts when they are first used: `signal` takes half a second

from primax.verify.row import Row, verdict

SIZES = tuple(2**i for i in range(9, 16))
REPEATS, MARGIN = 24, 0.02


def concentration(dim: int) -> Row:
    """The largest error over buckets against the number of snapshots, and the slope of both."""
    rng = np.random.default_rng(dim)
    errors = np.array([[_errors(rng, size, dim) for _ in range(REPEATS)] for size in SIZES])
    errors = np.median(errors, axis=1)
    # The terms' constants are not stated, so the slower of the two is all that is promised.
    stated = max(slope(term) for term in np.array([rate(size, dim) for size in SIZES]).T)
    slopes = [slope(errors[:, i]) for i in range(2)]
    return Row(
        name=f"concentration_d{dim}",
        statement="Prop. 5, about the estimator class (the deployed count is exact): Nadaraya-Watson mean "
        f"and variance of an AR(1) in d = {dim}, h = M^(-1/{dim + 2})",
        bound=f"slope in M of √(log N/(M h^d)) + h: {stated:.3f} (+{MARGIN})",
        measured=f"mean {slopes[0]:.3f}, variance {slopes[1]:.3f}; largest error {errors[0, 0]:.2f} and "
        f"{errors[0, 1]:.2f} at M = {SIZES[0]}, {errors[-1, 0]:.2f} and {errors[-1, 1]:.2f} at {SIZES[-1]}",
        verdict=verdict(max(slopes) <= stated + MARGIN),
        numbers={"stated": stated, "mean": slopes[0], "variance": slopes[1]},
    )


def bandwidth(size: int, dim: int) -> float:
    """h ∝ M^(-1/(d+2)), which balances the rate's two terms."""
    return float(size ** (-1 / (dim + 2)))


def centres(size: int, dim: int) -> np.ndarray:
    """Along one axis, bucket centres of [-1, 1] at scale h."""
    return np.linspace(-1, 1, max(2, int(2 / bandwidth(size, dim))))


def rate(size: int, dim: int) -> tuple[float, float]:
    """The stated rate's terms: noise, and bias."""
    h, buckets = bandwidth(size, dim), len(centres(size, dim)) ** dim
    return float(np.sqrt(np.log(buckets) / (size * h**dim))), h


def slope(values: np.ndarray) -> float:
    """Of log value against log M."""
    return float(np.polyfit(np.log(SIZES), np.log(values), 1)[0])


def process(rng: np.random.Generator, size: int, dim: int) -> np.ndarray:
    """A stationary AR(1) a coordinate: geometrically β-mixing."""
    first, noise = rng.normal(size=(1, dim)), rng.normal(size=(size, dim))
    return scipy.signal.lfilter([np.sqrt(0.75)], [1.0, -0.5], noise, axis=0, zi=0.5 * first)[0]


def mean_of(x: np.ndarray) -> np.ndarray:
    """A mean with kinks: Lipschitz and no smoother."""
    return np.mean(np.abs((2 * x) % 2 - 1), axis=-1)


def variance_of(x: np.ndarray) -> np.ndarray:
    """A conditional variance that is Lipschitz too, and at most 0.75."""
    return 0.25 + 0.5 * np.mean(np.abs((2 * x + 0.5) % 2 - 1), axis=-1)


def _errors(rng: np.random.Generator, size: int, dim: int) -> tuple[float, float]:
    """Largest error of the estimated mean and variance over the buckets; Y is bounded."""
    x, at, h = process(rng, size, dim), centres(size, dim), bandwidth(size, dim)
    noise = rng.uniform(-np.sqrt(3), np.sqrt(3), size)
    y = mean_of(x) + np.sqrt(variance_of(x)) * noise
    near = [(np.abs(x[:, i] - at[:, None]) <= h).astype(float) for i in range(dim)]
    sums = [_over_boxes(near, value) for value in (np.ones(size), y, y**2)]
    count = np.maximum(sums[0], 1)
    mean = sums[1] / count
    grid = np.stack(np.meshgrid(*[at] * dim, indexing="ij"), axis=-1)
    off_mean = np.abs(mean - mean_of(grid))
    off_variance = np.abs(sums[2] / count - mean**2 - variance_of(grid))
    is_met = sums[0] > 0
    return float(off_mean[is_met].max()), float(off_variance[is_met].max())


def _over_boxes(near: list[np.ndarray], value: np.ndarray) -> np.ndarray:
    """Sums of `value` over the points in each box, the boxes being a product of intervals."""
    return near[0] @ value if len(near) == 1 else (near[0] * value) @ near[1].T
