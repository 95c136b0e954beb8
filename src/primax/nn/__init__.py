"""Networks as plain arrays, the GPU kernels of the trunk, and Adam."""
