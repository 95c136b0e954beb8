"""The learner: critics, the ring of experience, and the compiled program that joins them to a reward."""
