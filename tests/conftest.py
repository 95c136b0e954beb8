"""Strict arithmetic for every test, quick compilation, and no program compiled twice."""

import atexit
import contextlib
import gc
import os
import shutil
import signal
import tempfile

import jax
import pytest
from jax._src import compiler

jax.config.update("jax_numpy_rank_promotion", "raise")
# A GPU would multiply in TF32; the oracles are float32.
jax.config.update("jax_default_matmul_precision", "highest")
# Most of a test's time is the compiler's, and this takes a third of it. It changes how the machine
# code of this process is made, not what it means; commands started by a test are compiled as a
# user's are, but for those that take `QUICK_CHILDREN`.
jax.config.update("jax_disable_most_optimizations", True)
QUICKER = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}

# A shell that puts the tests into the background ignores what some of them send.
for kind in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(kind) is signal.SIG_IGN:
        signal.signal(kind, signal.default_int_handler if kind == signal.SIGINT else signal.SIG_DFL)

# Workers fill the cores: a second thread of numpy's would wait for one, spinning, and programs that
# hand their work to a second thread of jax's take a fifth longer. Workers inherit it, and commands.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NPROC", "1")

# One folder of compiled programs for all workers, and for the commands that tests start; it goes when
# the tests are through. A worker that reads what another is writing compiles it itself.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="primax-tests-")
    atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)
jax.config.update("jax_compilation_cache_dir", os.path.join(os.environ["XDG_CACHE_HOME"], "primax"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


PROGRAMS = {}
"""Those of `compiled_once`, by configuration and seeds."""


def quick_options(*args, make_options=compiler.get_compile_options, **kwargs):
    """What jax tells the compiler and, unless it is to optimise, to take the quicker way."""
    options = make_options(*args, **kwargs)
    if jax.config.read("jax_disable_most_optimizations"):
        options.env_option_overrides = [*options.env_option_overrides, *QUICKER.items()]
    return options


QUICK_CHILDREN = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
"""Surroundings in which commands that a test starts are compiled quickly too."""

with contextlib.suppress(jax.errors.JaxRuntimeError):  # another version may not know the option
    jax.jit(lambda x: x, compiler_options=QUICKER)(0.0)
    compiler.get_compile_options = quick_options
    QUICK_CHILDREN["XLA_FLAGS"] = " ".join(f"--{name}={x}".lower() for name, x in QUICKER.items())


def pytest_runtest_teardown(item, nextitem) -> None:
    """What a file of tests compiled goes with it: a worker would come to hold gigabytes."""
    if nextitem is None or nextitem.path != item.path:
        PROGRAMS.clear()
        jax.clear_caches()
        gc.collect()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items) -> None:
    """What is long is slow too."""
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """What is there before the first test stays: looking through it for garbage took 8% of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def pytest_sessionstart() -> None:
    """The flags that commands set: they belong to a program's name in the cache."""
    from primax.cli.common import SAME_BITS  # where types are checked by now

    os.environ.setdefault("XLA_FLAGS", " ".join(SAME_BITS))


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


@pytest.fixture
def quick_children(monkeypatch):
    """Commands that the test starts are compiled quickly: for tests of what they do, not of bits."""
    for name, value in QUICK_CHILDREN.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def compiled_once():
    """A file's runs of equal settings share a program, which is traced and loaded once: for tests
    of what runs leave in folders. Those that change what a program does must not take it."""
    from primax.runs import loop

    def compile_program(learner, seeds, devices=1, compiled=loop.compile_program):
        name = (learner.config, seeds, devices, jax.config.read("jax_disable_most_optimizations"))
        if name not in PROGRAMS:
            PROGRAMS[name] = compiled(learner, seeds, devices)
        return PROGRAMS[name]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "compile_program", compile_program)
        yield
