"""Two mini-grammars, English and Chinese, whose sentences ask for one thing and mean several, all certain.

    role     who did it, and to whom: active and passive, bystanders     the dog was followed by the fox
    review   which way a review goes: negation, "but", "although"        the soup was not good but the film was great
    agree    a form that follows the subject and not the nearest noun    today the dogs near the cat [MASK] tired
    reflex   a pronoun that follows the subject                          the queen near the king watched [MASK]
    tags     the parts that words play in all of these                   dog: whom, fox: who, good: bad ("not good")

The first four are asked for at a [MASK], the tags at the words themselves. Almost every question has a mirror: the
same words in another order, and another answer. A model that cannot see order gives both the same answer, so of
such a pair it gets at most one right.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from ..vocabulary import CHINESE, CHINESE_CLASSES, CLS, ENGLISH, ENGLISH_CLASSES, MASK, SEP, plural
from .task import Question, held_out

ASKED = ("role", "review", "agree", "reflex")
KINDS = (*ASKED, "tags")

Pair = tuple[Question, Question | None]
Words = list[str]
Marked = list[str | tuple[str, str]]  # a word, or a word and the part it plays


def ask(kind: str, body: Marked, question: Sequence[str], answer: str) -> Question:
    """[CLS] body [SEP] question [SEP]; without a question the body itself holds the [MASK]."""
    tail = (SEP, *question, SEP) if question else (SEP,)
    tags = tuple((1 + i, part[1]) for i, part in enumerate(body) if isinstance(part, tuple))
    return Question(kind, (CLS, *strip(body), *tail), answer, tags)


class Grammar(ABC):
    """What the two languages share; a language adds its words and its word order."""

    words: tuple[str, ...]
    classes: dict[str, tuple[str, ...]]
    good: str
    bad: str
    overall: tuple[str, str]

    def __init__(self) -> None:
        self.nouns = [word for kind in ("man", "woman", "animal") for word in self.classes[kind]]

    def pick(self, r: Random, kind: str) -> str:
        """Any word of a class."""
        return r.choice(self.classes[kind])

    def make(self, kind: str, r: Random) -> tuple[tuple[str, str], Pair]:
        """A content pair, which decides between training and evaluation, and a question with its mirror."""
        return getattr(self, kind)(r)

    @abstractmethod
    def clause(self, r: Random, thing: str, word: str, negated: bool, plain: bool = False) -> Marked:
        """What is said of one thing. plain: in the same words wherever the negation is."""

    @abstractmethod
    def join(self, form: str, concedes: Marked, decides: Marked) -> Marked:
        """Two clauses, of which the second decides where the form has one decide."""

    # --- review: one body for both languages --------------------------------------------------------------

    def review(self, r: Random) -> tuple[tuple[str, str], Pair]:
        """Which way a review of one or two clauses goes."""
        body, mirror, right, key = self._review(r)
        one = ask("review", body, self.overall, self.good if right else self.bad)
        if mirror is None:
            return key, (one, None)
        return key, (one, ask("review", mirror, self.overall, self.bad if right else self.good))

    def _review(self, r: Random) -> tuple[Marked, Marked | None, bool, tuple[str, str]]:
        """Body, mirror, whether the body is a praise, and its content pair."""
        first, second = r.sample(self.classes["thing"], 2)
        form = r.choice(["one", "and", "but", "although", "afterwards"])
        praise = r.random() < 0.5
        if form == "one":
            negated = r.random() < 0.5
            word = self._word(r, praise, negated)
            return self.clause(r, first, word, negated), None, praise, (first, word)
        if form == "and" and r.random() < 0.3:  # both clauses alike: order cannot matter
            negated = r.random() < 0.5
            x, y = (self._word(r, praise, negated) for _ in range(2))
            clauses = self.clause(r, first, x, negated), self.clause(r, second, y, negated)
            return self.join("and", *clauses), None, praise, (x, y)
        if form == "and":  # one clause is negated; in the mirror it is the other one, and both turn round
            at = r.random() < 0.5
            x, y = self._word(r, praise, at), self._word(r, praise, not at)
            style = r.getrandbits(32)

            def built(at: bool) -> Marked:
                q = Random(style)
                return self.join(
                    "and",
                    self.clause(q, first, x, at, plain=True),
                    self.clause(q, second, y, not at, plain=True),
                )

            return built(at), built(not at), praise, (x, y)
        # One clause concedes, the other decides; in the mirror they change places.
        n1, n2 = r.random() < 0.4, r.random() < 0.4
        x, y = self._word(r, not praise, n1), self._word(r, praise, n2)
        concedes, decides = self.clause(r, first, x, n1), self.clause(r, second, y, n2)
        return self.join(form, concedes, decides), self.join(form, decides, concedes), praise, (x, y)

    def _word(self, r: Random, praise: bool, negated: bool) -> str:
        return self.pick(r, "good" if praise != negated else "bad")

    def judged(self, word: str, negated: bool) -> tuple[str, str]:
        """A quality with its polarity once negation is counted."""
        return word, self.good if (word in self.classes["good"]) != negated else self.bad


def strip(marked: Marked) -> Words:
    """The words without their parts."""
    return [part if isinstance(part, str) else part[0] for part in marked]


class English(Grammar):
    words = ENGLISH
    classes = ENGLISH_CLASSES
    good, bad = "good", "bad"
    overall = ("overall", MASK)

    def _phrase(self, r: Random, noun: tuple[str, str] | str, beside: str | None = None) -> Marked:
        """the (ADJ) noun (near the other)"""
        quality: Marked = [self.pick(r, "adjective")] if r.random() < 0.35 else []
        place: Marked = [self.pick(r, "place"), "the", (beside, "where")] if beside else []
        return ["the", *quality, noun, *place]

    def _scene(self, r: Random) -> tuple[Marked, tuple[str, str]]:
        """Somebody did something to somebody."""
        a, b, c = r.sample(self.nouns, 3)
        passive, beside, verb = r.random() < 0.5, r.random(), self.pick(r, "verb")
        subject, other = ("whom", "who") if passive else ("who", "whom")
        left = self._phrase(r, (a, subject), c if beside < 0.35 else None)
        right = self._phrase(r, (b, other), c if 0.35 <= beside < 0.5 else None)
        return [*left, *(["was", verb, "by"] if passive else [verb]), *right], (a, b)

    def role(self, r: Random) -> tuple[tuple[str, str], Pair]:
        """Who did it, or to whom."""
        body, key = self._scene(r)
        agent = r.random() < 0.5
        question = ("who", "did", "it", "?", MASK) if agent else ("to", "whom", "?", MASK)
        return key, both_ways("role", body, question, "who" if agent else "whom", ("who", "whom"))

    def agree(self, r: Random) -> tuple[tuple[str, str], Pair]:
        """was, were, is or are, after the subject's number."""
        a, b, c = r.sample(self.nouns, 3)
        many = r.random() < 0.5
        others = many != (r.random() < 0.75)
        past, third = r.random() < 0.5, r.random() < 0.25
        tail: Marked = [self.pick(r, "place"), "the", (r.choice([c, plural(c)]), "where")] if third else []
        near, state = self.pick(r, "place"), self.pick(r, "state")

        def built(subject: str, other: str) -> Marked:
            when = "yesterday" if past else "today"
            return [when, "the", (subject, "who"), near, "the", (other, "where"), *tail, MASK, state]

        def form(plural_subject: bool) -> str:
            return {(0, 0): "is", (0, 1): "are", (1, 0): "was", (1, 1): "were"}[past, plural_subject]

        x, y = plural(a) if many else a, plural(b) if others else b
        one = ask("agree", built(x, y), (), form(many))
        return (a, b), (one, ask("agree", built(y, x), (), form(others)) if many != others else None)

    def reflex(self, r: Random) -> tuple[tuple[str, str], Pair]:
        """himself, herself, itself or themselves, after the subject."""
        a, b = r.sample(self.nouns, 2)
        many, others = r.random() < 0.25, r.random() < 0.25
        x, y = plural(a) if many else a, plural(b) if others else b
        quality = [self.pick(r, "adjective")] if r.random() < 0.35 else []
        near, verb = self.pick(r, "place"), self.pick(r, "verb")

        def built(subject: str, other: str) -> Marked:
            return ["the", *quality, (subject, "who"), near, "the", (other, "where"), verb, MASK]

        one, other = self._self(a, many), self._self(b, others)
        mirror = ask("reflex", built(y, x), (), other) if one != other else None
        return (a, b), (ask("reflex", built(x, y), (), one), mirror)

    def _self(self, noun: str, many: bool) -> str:
        if many:
            return "themselves"
        kinds = {"man": "himself", "woman": "herself", "animal": "itself"}
        return next(word for kind, word in kinds.items() if noun in self.classes[kind])

    def clause(self, r: Random, thing: str, word: str, negated: bool, plain: bool = False) -> Marked:
        """the THING was (not) (very) WORD"""
        degree = [self.pick(r, "degree")] if r.random() < 0.4 else []
        return ["the", thing, "was", *(["not"] if negated else []), *degree, self.judged(word, negated)]

    def join(self, form: str, concedes: Marked, decides: Marked) -> Marked:
        """Two clauses; of "but" and "although" the second argument is the one that decides."""
        if form == "although":
            return ["although", *concedes, ",", *decides]
        if form == "afterwards":
            return [*decides, "although", *concedes]
        return [*concedes, form, *decides]


class Chinese(Grammar):
    words = CHINESE
    classes = CHINESE_CLASSES
    good, bad = "好", "差"
    overall = ("总之", MASK)
    MEASURES = {"猫": "只", "狗": "只", "狐狸": "只", "熊": "头", "马": "匹", "兔子": "只"}  # people: 位  # noqa: RUF012

    def measure(self, noun: str) -> str:
        """The word that counts a noun."""
        return self.MEASURES.get(noun, "位")

    def _phrase(self, r: Random, noun: str, part: str, beside: str | None = None) -> tuple[Marked, Marked]:
        """(旁边的) and (这只) noun: what stands before the noun, and the noun with what belongs to it."""
        place: Marked = [(beside, "旁观"), self.pick(r, "place"), "的"] if beside else []
        quality = [self.pick(r, "adjective"), "的"] if r.random() < 0.3 else []
        counted = [r.choice(["这", "那"]), self.measure(noun)] if r.random() < 0.3 else []
        return [*place, *quality], [*counted, (noun, part)]

    def _scene(self, r: Random) -> tuple[Callable[[Marked, Marked], Marked], Marked, Marked]:
        """How a scene is built from two noun phrases, and the phrases."""
        a, b, c = r.sample(self.nouns, 3)
        beside, verb = r.random(), self.pick(r, "verb")
        form = r.choice(["plain", "被"] if verb == "追" else ["plain", "把", "被"])
        before_a, core_a = self._phrase(r, a, "", c if beside < 0.35 else None)
        before_b, core_b = self._phrase(r, b, "", c if 0.35 <= beside < 0.5 else None)
        passive = form == "被"

        def built(first: Marked, second: Marked) -> Marked:
            left = [*before_a, *first[:-1], (first[-1][0], "被动" if passive else "主动")]
            right = [*before_b, *second[:-1], (second[-1][0], "主动" if passive else "被动")]
            return [*left, verb, "了", *right] if form == "plain" else [*left, form, *right, verb, "了"]

        return built, core_a, core_b

    def role(self, r: Random) -> tuple[tuple[str, str], Pair]:
        """Who did it, or to whom; a noun takes its measure word along into the mirror."""
        built, a, b = self._scene(r)
        agent = r.random() < 0.5
        question = ("是" if agent else "对", "谁", "做", "的", "？", MASK)
        part = "主动" if agent else "被动"
        one, other = (
            ask("role", body, question, next(w for w, p in marks(body) if p == part))
            for body in (built(a, b), built(b, a))
        )
        return (a[-1][0], b[-1][0]), (one, other)

    def agree(self, r: Random) -> tuple[tuple[str, str], Pair]:
        """那 [MASK] N1 看见 了 N2: the measure word belongs to N1."""
        a, b = r.sample(self.nouns, 2)
        before = [[self.pick(r, "adjective"), "的"] if r.random() < 0.3 else [] for _ in range(2)]
        this = r.choice(["这", "那"])

        def built(subject: str, other: str) -> Marked:
            return [this, MASK, *before[0], (subject, "主动"), "看见", "了", *before[1], (other, "被动")]

        x, y = self.measure(a), self.measure(b)
        return (a, b), (
            ask("agree", built(a, b), (), x),
            ask("agree", built(b, a), (), y) if x != y else None,
        )

    def reflex(self, r: Random) -> tuple[tuple[str, str], Pair]:
        """N2 旁边 的 N1 说 [MASK] 很 累: the pronoun is N1's."""
        a, b = r.sample(self.nouns, 2)
        near, degree, state = (self.pick(r, kind) for kind in ("place", "degree", "state"))
        quality = [self.pick(r, "adjective"), "的"] if r.random() < 0.3 else []

        def built(subject: str, other: str) -> Marked:
            return [(other, "旁观"), near, "的", *quality, (subject, "主动"), "说", MASK, degree, state]

        def pronoun(noun: str) -> str:
            kinds = {"man": "他", "woman": "她", "animal": "它"}
            return next(word for kind, word in kinds.items() if noun in self.classes[kind])

        x, y = pronoun(a), pronoun(b)
        return (a, b), (
            ask("reflex", built(a, b), (), x),
            ask("reflex", built(b, a), (), y) if x != y else None,
        )

    def clause(self, r: Random, thing: str, word: str, negated: bool, plain: bool = False) -> Marked:
        """THING 很 WORD, or THING 不 (太) WORD. plain: the same words wherever the negation is."""
        if negated:
            too = ["太"] if not plain and r.random() < 0.4 else []
            return [thing, "不", *too, self.judged(word, True)]
        return [thing, "很" if plain else self.pick(r, "degree"), self.judged(word, False)]

    def join(self, form: str, concedes: Marked, decides: Marked) -> Marked:
        """Two clauses; of 但是 and 虽然 the second argument is the one that decides."""
        if form == "although":
            return ["虽然", *concedes, "，", *decides]
        if form == "afterwards":
            return [*decides, "，", "虽然", *concedes]
        return [*concedes, "，", "而且" if form == "and" else "但是", *decides]


def marks(body: Marked) -> list[tuple[str, str]]:
    """The words that play a part."""
    return [part for part in body if isinstance(part, tuple)]


def both_ways(kind: str, body: Marked, question: Sequence[str], part: str, parts: tuple[str, str]) -> Pair:
    """The question, and its mirror in which the words of the two parts have changed places."""
    i, j = (next(n for n, p in enumerate(body) if isinstance(p, tuple) and p[1] == which) for which in parts)
    mirror = list(body)
    mirror[i], mirror[j] = (body[j][0], body[i][1]), (body[i][0], body[j][1])
    one, other = (ask(kind, b, question, next(w for w, p in marks(b) if p == part)) for b in (body, mirror))
    return one, other


GRAMMARS: dict[str, type[Grammar]] = {"en": English, "zh": Chinese}


def questions(
    lang: str, pairs: int, seed: int, evaluation: bool, kinds: Sequence[str] = ASKED
) -> list[Question]:
    """Seeded questions of the kinds in turn, each followed by its mirror; none of training occurs in evaluation.

    For evaluation only pairs are made; for training also questions without a mirror.
    """
    grammar, r, found = GRAMMARS[lang](), Random(seed), []
    made = 0
    while made < pairs:
        key, (one, mirror) = grammar.make(kinds[made % len(kinds)], r)
        if held_out(*key) != evaluation or (evaluation and mirror is None):
            continue
        for question in (one, mirror):
            if question is not None:
                found.append(replace(question, pair=made))
        made += 1
    return found
