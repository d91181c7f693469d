"""The words of the from-scratch encoder's mini-grammar: few enough that a whole heatmap can be read."""

PAD, UNK, CLS, SEP, MASK = SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

_ENGLISH = {
    "function": "the was were is are by who did it to whom ? , not and but although today yesterday",
    "self": "himself herself itself themselves",
    "man": "king boy man brother uncle",
    "woman": "queen girl woman sister aunt",
    "animal": "dog cat fox bear horse rabbit",
    "verb": "chased followed helped watched called pushed visited greeted",
    "adjective": "big small old young quick quiet",
    "place": "near behind beside",
    "state": "hungry tired happy asleep",
    "thing": "film soup hotel room music food service book",
    "good": "good great lovely nice",
    "bad": "bad awful dull dirty",
    "degree": "very really",
}
ENGLISH_CLASSES: dict[str, tuple[str, ...]] = {name: tuple(text.split()) for name, text in _ENGLISH.items()}

_IRREGULAR_PLURALS = {"man": "men", "woman": "women", "fox": "foxes"}


def plural(noun: str) -> str:
    """dog -> dogs, woman -> women."""
    return _IRREGULAR_PLURALS.get(noun, noun + "s")


def _english() -> tuple[str, ...]:
    singular = [word for name in ("man", "woman", "animal") for word in ENGLISH_CLASSES[name]]
    plurals = [plural(noun) for noun in singular]
    return (*SPECIALS, *(word for words in ENGLISH_CLASSES.values() for word in words), *plurals)


ENGLISH = _english()
"""Every token of the English encoder; a token's place is its id."""
