"""The paper's claims in words, each with a test on numbers."""
