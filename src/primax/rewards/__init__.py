"""Rewards: what a transition is worth. One file each; `base` is their interface."""
