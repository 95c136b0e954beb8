"""Why some tests of claims cannot fail here: what decides them whatever an agent learns."""

from primax.paper.claims.scores import Case
from primax.paper.references import world_of
from primax.worlds import ACTIONS

WORLDS = ("butterflies", "maze")


def no_run_enters(case: Case) -> str:
    return "arithmetic: no run enters"


def made_so(case: Case) -> str:
    return "the runs were made so"


def walker_fails_too(case: Case) -> str:
    walker = case.get("random", "maze", "peak").mean()
    return f"a random walker's own peak is {walker:.3f}: an agent no better than chance passes"


def walkers_critic(case: Case) -> str:
    walker = case.get("random", "maze", "tail:greedy_entropy").mean()
    return f"the critic of a random walker, which has no reward, has {walker:.2g}"


def walker_has_it_too(case: Case) -> str:
    least = [case.get("random", w, "tail:mutual_information").min() for w in WORLDS]
    both = " and ".join(f"{value:.4f}" for value in least)
    return f"I ≤ H(A) ≤ log 5 is arithmetic, and a random walker is above zero too: {both} at least"


def drawn_blindly(case: Case) -> str:
    return "its actions are drawn without a look at the state: a test of the estimator"


def no_noise_to_clamp(case: Case) -> str:
    """With the gate off, α = 0, elements are `clamped` that have no noise at all."""
    shares = [case.get("prime_no_gate", world, "clamp_share").mean() for world in WORLDS]
    off = " and ".join(f"{share:.2f}" for share in shares)
    return f"without a gate {off} have no noise to clamp: Maze is deterministic"


def fourth_power(case: Case) -> str:
    """g_k = Σ (π_ref - u) Ẽ_k, and Ẽ itself is as small as π_ref - u: a variance of fourth order."""
    margins = [case.get("prime", world, "tail:pi_ref_from_u").mean() for world in WORLDS]
    orders = " and ".join(f"{margin**4:.0e}" for margin in margins)
    return f"centred under a π_ref so near u, cross-head variance is of the order ‖π_ref-u‖₁⁴, {orders}"


def full_ring(case: Case) -> str:
    """A key's n counted rows in the ring add n/(N+1) ≤ 1, and those not yet counted 1 each."""
    most = []
    for world in WORLDS:
        found = case.runs.settings("prime", world)
        scale = found["reward.count_scale"] * found["critics.gamma"] ** 2
        keys = world_of(case.runs, world).num_keys * len(ACTIONS)
        most.append(f"{scale * (keys + found['window']) / found['replay']:.1e}")
    bound = " and ".join(most)
    return f"counts only grow: over a full ring it is at most κγ²(keys + window)/rows, {bound}"


def deterministic(case: Case) -> str:
    return "Maze is deterministic, so that rows of one key differ in the flag alone"


def softmax(case: Case) -> str:
    return "a softmax is uniform only if all logits are equal to the last bit"
