"""The paper's symbols for fields: shown in lists, and understood in hints by letter or by name."""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from string import digits

GREEK = {
    "α": "alpha",
    "β": "beta",
    "γ": "gamma",
    "ε": "epsilon",
    "η": "eta",
    "κ": "kappa",
    "λ": "lambda",
    "σ": "sigma",
    "τ": "tau",
    "φ": "phi",
}
SHORT = {"eps": "epsilon", "lam": "lambda", "lamda": "lambda"}
"""As people write them in code, where `lambda` is taken."""


@dataclass(frozen=True)
class Symbol:
    """What the paper calls a field: `λ`, `h_g`, `σ₀²`."""

    text: str


def plain(text: str) -> str:
    """`σ₀²`, `sigma_0^2` and `Sigma02` are one: Greek letters by name, nothing but letters and digits."""
    text = unicodedata.normalize("NFKC", text).lower()
    text = "".join(GREEK.get(letter, letter) for letter in text)
    words = "".join(letter if letter.isalnum() else " " for letter in text).split()
    return "".join(SHORT.get(word, word) for word in words)


def stem(symbol: str) -> str:
    """A symbol without what stands below and above it: `ε_end` is an ε, `σ₀²` a σ."""
    return plain(symbol.partition("_")[0]).rstrip(digits)


def bearers(name: str, symbols: Mapping[str, str]) -> list[str]:
    """The fields, of fields and their symbols, that `reward.lambda`, `λ` or `sigma0` may mean; one \
of its own group before others."""
    group, _, last = name.rpartition(".")
    own = {field: symbol for field, symbol in symbols.items() if field.startswith(f"{group}.")}
    said = plain(last)
    for pool in (own, symbols):
        whole = [field for field, symbol in pool.items() if plain(symbol) == said]
        parts = [field for field, symbol in pool.items() if stem(symbol) == said.rstrip(digits)]
        if whole or parts:
            return whole or parts
    return []
