"""Strict arithmetic for every test, quick compilation, and no program compiled twice by one worker."""

import atexit
import os
import shutil
import signal
import tempfile

import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")
# A GPU would multiply in TF32; the oracles are float32.
jax.config.update("jax_default_matmul_precision", "highest")
# Most of a test's time is the compiler's, and this halves it. It changes how the machine code of
# this process is made, not what it means; commands started by a test are compiled as a user's are.
jax.config.update("jax_disable_most_optimizations", True)

# A shell that puts the tests into the background ignores what some of them send.
for kind in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(kind) is signal.SIG_IGN:
        signal.signal(kind, signal.default_int_handler if kind == signal.SIGINT else signal.SIG_DFL)

# Workers fill the cores: a second thread of numpy's would wait for one, spinning. Workers inherit it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A folder of its own: a worker that reads an entry while another writes it would warn, and fail.
cache = tempfile.mkdtemp(prefix="primax-tests-")
atexit.register(shutil.rmtree, cache, ignore_errors=True)
jax.config.update("jax_compilation_cache_dir", cache)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def pytest_xdist_auto_num_workers() -> int | None:
    """A worker a core, as far as memory goes: each comes to hold some gigabytes."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None  # as xdist would
    has_affinity = hasattr(os, "sched_getaffinity")  # a container may have fewer than there are
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(cores, int(memory / 2.5e9)))


@pytest.fixture
def optimised():
    """Compiled as a user's programs are: for tests of bits, which the compiler could change."""
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", True)
