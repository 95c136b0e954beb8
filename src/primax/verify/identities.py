"""The identities the paper leans on, in closed form on Dirichlet tables."""

import numpy as np
from scipy.special import digamma, gammaln

from primax.presets import paper
from primax.verify.row import Row, text, verdict

TABLES = 500


def tables(rng: np.random.Generator) -> list[np.ndarray]:
    """Dirichlet parameters of 2 to 12 outcomes: priors from sparse to flat, with and without counts."""
    made = []
    for _ in range(TABLES):
        num = rng.integers(2, 13)
        prior = np.full(num, 10.0 ** rng.uniform(-1, 1))
        counts = rng.multinomial(rng.integers(0, 1_000), rng.dirichlet(np.full(num, 0.5)))
        made.append(prior + counts)
    return made


def entropy(alpha: np.ndarray) -> float:
    """H(S' | s, a, D) of the predictive distribution."""
    p = alpha / alpha.sum()
    return float(-np.sum(p * np.log(p)))


def expected_entropy(alpha: np.ndarray) -> float:
    """E_θ H(S' | s, a, θ)."""
    total = alpha.sum()
    return float(digamma(total + 1) - np.sum(alpha / total * digamma(alpha + 1)))


def information_gain(alpha: np.ndarray) -> np.ndarray:
    """KL of the posterior from the prior after each outcome: one row more of it."""
    total = alpha.sum()
    # log B(α) - log B(α + e_x), and the expectation of log θ_x after x.
    return np.log(total) - np.log(alpha) + digamma(alpha + 1) - digamma(total + 1)


def divergence(new: np.ndarray, old: np.ndarray) -> float:
    """KL between two Dirichlet distributions, the textbook's formula."""
    weigh = lambda a: gammaln(a.sum()) - np.sum(gammaln(a))  # noqa: E731
    away = np.sum((new - old) * (digamma(new) - digamma(new.sum())))
    return float(weigh(new) - weigh(old) + away)


def bald() -> Row:
    """I = H - E H, with I computed as the expected divergence of posterior from prior."""
    weight = paper("prime", "maze").reward.aleatoric_weight
    worst, worst_u = 0.0, 0.0
    for alpha in tables(np.random.default_rng(0)):
        p, eye = alpha / alpha.sum(), np.eye(len(alpha))
        gain = sum(p[i] * divergence(alpha + eye[i], alpha) for i in range(len(alpha)))
        total, noise = entropy(alpha), expected_entropy(alpha)
        worst = max(worst, abs(gain - (total - noise)))
        worst_u = max(worst_u, abs(gain - weight * noise - (total - (1 + weight) * noise)))
    return Row(
        name="bald",
        statement=f"BALD: I(θ;S') = H - E H, and U = H - (1+λ) E H, on {TABLES:,} Dirichlet tables",
        bound="difference ≤ 1e-9 (float64)",
        measured=f"{text(worst)} and {text(worst_u)}",
        verdict=verdict(max(worst, worst_u) <= 1e-9),
        numbers={"information": worst, "objective": worst_u},
    )


def chain() -> Row:
    """IG ≤ PG ≤ 1/N̂ for every outcome; and what a count of (s, a) has to do with it."""
    first, second, count, by_visits = -np.inf, -np.inf, 0.0, {}
    for alpha in tables(np.random.default_rng(1)):
        total = alpha.sum()
        rho, recoded = alpha / total, (alpha + 1) / (total + 1)
        pseudo = rho * (1 - recoded) / (recoded - rho)
        gain, prediction = information_gain(alpha), np.log(recoded / rho)
        first = max(first, np.max(gain - prediction))
        second = max(second, np.max(prediction - 1 / pseudo))
        count = max(count, np.max(np.abs(pseudo / alpha - 1)))
        times = float(np.sum(rho * gain) * total)
        by_visits[len(alpha)] = max(by_visits.get(len(alpha), 0.0), times)
    small = max(by_visits[num] for num in (2, 3))
    return Row(
        name="pseudo_count",
        statement="IG ≤ PG ≤ 1/N̂ on such tables, N̂ being the outcome's pseudo-count, its Dirichlet parameter α; "
        "a count of (s, a) bounds I(θ;S') up to the number of outcomes only",
        bound="differences ≤ 0; N̂ = α; I·Σα ≤ number of outcomes",
        measured=f"{text(first)} and {text(second)}; N̂ off by {text(count)}; I·Σα up to {small:.2f} with 2 or 3 "
        f"outcomes, {by_visits[12]:.2f} with 12",
        verdict=verdict(
            max(first, second) <= 1e-12
            and count <= 1e-6
            and all(times <= num for num, times in by_visits.items())
        ),
        numbers={"first": float(first), "second": float(second), "visits_12": by_visits[12]},
    )
