"""The words of the from-scratch encoder's mini-grammar: small enough that a whole heatmap can be read."""

PAD, UNK, CLS, SEP, MASK = SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

_PEOPLE = "king boy man brother uncle queen girl woman sister aunt".split()
_ANIMALS = "dog cat fox bear horse rabbit".split()
_IRREGULAR_PLURALS = {"man": "men", "woman": "women", "fox": "foxes"}
_VERBS = "chased followed helped watched called pushed visited greeted".split()
_SIZES_AND_AGES = "big small old young quick quiet".split()
_PLACES = "near behind beside".split()
_STATES = "hungry tired happy asleep".split()
_THINGS = "film soup hotel room music food service book".split()
_PRAISE = "good great lovely nice".split()
_BLAME = "bad awful dull dirty".split()
_DEGREES = "very really".split()
_GRAMMAR = (
    "the was were is are by who did it to whom ? , not and but although today yesterday "
    "himself herself itself themselves"
).split()


def plural(noun: str) -> str:
    """dog -> dogs, woman -> women."""
    return _IRREGULAR_PLURALS.get(noun, noun + "s")


_NOUNS = _PEOPLE + _ANIMALS

ENGLISH: tuple[str, ...] = (
    *SPECIALS,
    *_GRAMMAR,
    *_NOUNS,
    *(plural(noun) for noun in _NOUNS),
    *_VERBS,
    *_SIZES_AND_AGES,
    *_PLACES,
    *_STATES,
    *_THINGS,
    *_PRAISE,
    *_BLAME,
    *_DEGREES,
)
