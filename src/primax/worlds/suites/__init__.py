"""Worlds of other people: `gymnax:DeepSea-bsuite` is one. A suite is imported when it is named."""
