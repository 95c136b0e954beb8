"""Strict arithmetic for every test."""

import jax

jax.config.update("jax_numpy_rank_promotion", "raise")
# A GPU would multiply in TF32; the oracles are float32.
jax.config.update("jax_default_matmul_precision", "highest")
