"""Strict arithmetic for every test, and no program compiled twice by one worker."""

import atexit
import shutil
import tempfile

import jax

jax.config.update("jax_numpy_rank_promotion", "raise")
# A GPU would multiply in TF32; the oracles are float32.
jax.config.update("jax_default_matmul_precision", "highest")

# A folder of its own: two workers that write the same entry at once would warn, and fail.
cache = tempfile.mkdtemp(prefix="primax-tests-")
atexit.register(shutil.rmtree, cache, ignore_errors=True)
jax.config.update("jax_compilation_cache_dir", cache)
