"""Tasks say what is right, exactly: checked by other means than the generator's."""

import itertools
import math
import re
from random import Random

import pytest
import torch

from bilingual import SurgeryError, Words
from models.tasks import IGNORED, TASKS, Task, order_blind, task
from models.tasks.characters import Characters, entropy, line, obeys
from models.tasks.fetch import LENGTH, OFFSETS, Fetch
from models.tasks.first import First
from models.tasks.grammar import ASKED, GRAMMARS, KINDS, Chinese, English, questions
from models.tasks.task import held_out
from models.tasks.translation import MEANINGS, Translation, sentences
from models.vocabulary import CHARACTERS, CHINESE, ENGLISH, ENGLISH_CLASSES, SPECIALS, TRANSLATION

LANGUAGES = ("en", "zh")


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


# --- the mini-grammars --------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("kind", ASKED)
def test_a_mirror_has_the_same_words_and_the_other_answer(lang, kind):
    asked = questions(lang, 100, 3, True, [kind])
    assert len(asked) == 200
    for one, other in zip(asked[::2], asked[1::2], strict=True):
        assert one.pair == other.pair and one.kind == other.kind == kind
        assert sorted(one.tokens) == sorted(other.tokens)
        assert one.answer != other.answer
        assert one.tokens[one.place] == "[MASK]"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_questions_use_the_vocabulary_and_all_of_it(lang):
    words = set(GRAMMARS[lang].words)
    used = set()
    for question in questions(lang, 4000, 5, False):
        used |= {*question.tokens, question.answer, *(tag for _, tag in question.tags)}
    assert used <= words
    rest = words - used - set(SPECIALS)
    assert rest <= {"条"}, rest  # a measure word that is never right here


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_same_seed_asks_the_same_and_training_never_shows_an_evaluation_pair(lang):
    one, again = (questions(lang, 300, 11, True) for _ in range(2))
    assert one == again != questions(lang, 300, 12, True)
    shown = {q.tokens for q in questions(lang, 6000, 1000, False)}
    assert not shown & {q.tokens for q in one}
    keys = list(itertools.combinations(ENGLISH_CLASSES["animal"] + ENGLISH_CLASSES["man"], 2))
    share = sum(held_out(*key) for key in keys) / len(keys)
    assert 0.05 < share < 0.4 and all(held_out(a, b) == held_out(b, a) for a, b in keys)


def clauses(words):
    """English review -> (words of the clause that decides, in order of the two clauses)."""
    text = " ".join(words)
    if text.startswith("although"):
        return text.split(" , ")[1]
    if " although " in text:
        return text.split(" although ")[0]
    return text.split(" but ")[-1]


def test_english_answers_are_right_by_an_independent_reading():
    for question in questions("en", 800, 21, False):
        body = list(question.tokens[1:])
        body = body[: body.index("[SEP]")]
        text = " ".join(body)
        if question.kind == "review":
            decides = clauses(body).split(" and ")[0]
            quality = decides.split()[-1]
            praise = (quality in ENGLISH_CLASSES["good"]) != ("not" in decides.split())
            assert question.answer == ("good" if praise else "bad"), text
        elif question.kind == "role":
            nouns = r"(?:the )(?:\w+ )*?(\w+)(?: (?:near|behind|beside) the \w+)?"
            passive = re.fullmatch(rf"{nouns} was \w+ by {nouns}", text)
            active = passive or re.fullmatch(
                rf"{nouns} (?:{'|'.join(ENGLISH_CLASSES['verb'])}) {nouns}", text
            )
            first, second = active.groups()
            agent, patient = (second, first) if passive else (first, second)
            assert question.answer == (agent if "who did it" in " ".join(question.tokens) else patient), text
        elif question.kind == "agree":
            subject = body[2]
            many = subject.endswith("s") or subject in ("men", "women")
            form = {
                ("today", 0): "is",
                ("today", 1): "are",
                ("yesterday", 0): "was",
                ("yesterday", 1): "were",
            }
            assert question.answer == form[body[0], many], text


def test_chinese_answers_are_right_by_an_independent_reading():
    grammar = Chinese()
    for question in questions("zh", 800, 21, False):
        body = question.tokens[1 : question.tokens.index("[SEP]")]
        if question.kind == "role":
            nouns = [w for w in body if w in grammar.nouns]
            beside = {body[i - 1] for i, w in enumerate(body) if w in ("旁边", "后面", "前面")}
            first, second = [n for n in nouns if n not in beside] or nouns
            agent, patient = (second, first) if "被" in body else (first, second)
            assert question.answer == (agent if "是" in question.tokens else patient), body
        elif question.kind == "agree":
            noun = next(w for w in body if w in grammar.nouns)
            assert question.answer == grammar.measure(noun)


def test_tags_name_the_parts():
    for question in questions("en", 200, 4, False):
        for place, tag in question.tags:
            word = question.tokens[place]
            if tag in ("good", "bad"):
                before = question.tokens[max(0, place - 2) : place]
                assert (tag == "good") == ((word in ENGLISH_CLASSES["good"]) != ("not" in before))
            else:
                assert tag in ("who", "whom", "where")
                assert (tag == "where") == (question.tokens[place - 2] in ("near", "behind", "beside")), (
                    question.tokens
                )


def test_the_best_order_blind_answer_by_brute_force():
    tried = random_small()
    for examples in tried:
        bags = sorted({tuple(sorted(tokens)) for tokens, _ in examples})
        answers = sorted({answer for _, answer in examples})
        best = 0.0
        for chosen in itertools.product(answers, repeat=len(bags)):  # every function from bags to answers
            function = dict(zip(bags, chosen, strict=True))
            right = [function[tuple(sorted(tokens))] == answer for tokens, answer in examples]
            best = max(best, sum(right) / len(right))
        assert order_blind(examples) == pytest.approx(best)
    assert order_blind([]) == 0


def random_small():
    r = Random(2)
    for _ in range(20):
        yield [
            (tuple(r.choice("ab") for _ in range(r.randint(1, 3))), r.choice("xyz"))
            for _ in range(r.randint(1, 9))
        ]


@pytest.mark.parametrize("name", ["encoder", "encoder-zh"])
def test_order_blindness_is_worth_half_of_the_mirrored_pairs(name):
    best = task(name).order_blind()
    assert {best[kind] for kind in ASKED} == {0.5}
    assert best["pairs"] == 0 and 0.5 < best["tags"] < 0.7


def test_a_kind_alone_and_tags_alone():
    role, tags = task("role"), task("tags-zh")
    batch = role.batch(32, generator())
    assert len(batch.parts) == 2 and set(role.order_blind()) == {"role", "mean", "pairs"}
    batch = tags.batch(32, generator())
    assert len(batch.parts) == 2
    words = {CHINESE[i] for i in batch.targets[batch.targets != IGNORED].tolist()}
    assert words == {"主动", "被动", "旁观", "好", "差"}
    assert set(tags.order_blind()) == {"tags", "mean", "pairs"}


def test_a_masked_row_asks_for_words_and_not_for_the_answer():
    batch = task("encoder").batch(256, generator())
    answers, tags, words = (targets != IGNORED for targets, _ in batch.parts)
    masked = words.any(1)
    assert 0.15 < masked.float().mean() < 0.4
    assert not (answers | tags)[masked].any()
    ids = batch.inputs["input_ids"]
    assert (ids[words] == ENGLISH.index("[MASK]")).all()
    assert (ids[answers] == ENGLISH.index("[MASK]")).all() and (answers.sum(1) == 1)[
        ~masked
    ].float().mean() > 0.9


# --- the other tasks ----------------------------------------------------------------------------------------


def test_each_line_obeys_and_has_the_probability_that_is_said():
    r = Random(3)
    lines = [line(r) for _ in range(300)]
    assert all(obeys(text.rstrip("\n")) for text, _ in lines)
    # "the dog sleeps.": no adjective, dog of five, singular, nothing beside, one verb of four, no place
    chance = math.log(0.6 * 0.2 * 0.5 * 0.5 * 0.25 * 0.7)
    assert {round(c, 9) for t, c in lines if re.fullmatch(r"the \w+ \w+\.\n", t)} == {round(chance, 9)}
    assert entropy() == pytest.approx(0.2862, abs=0.001)


@pytest.mark.parametrize(
    "text",
    [
        "the dog sleep.",
        "the dogs sleeps.",
        "the dog near the cats sleep.",
        "the dog.",
        "the dog sleeps",
        "",
        "a dog sleeps.",
    ],
)
def test_a_line_that_does_not_obey(text):
    assert not obeys(text)
    assert obeys("the old dog near the cats sleeps.")


def test_letters_are_asked_for_one_ahead():
    batch = Characters().batch(5, generator())
    ids = batch.inputs["input_ids"]
    assert ids.shape == batch.targets.shape == (5, 64)
    assert torch.equal(ids[:, 1:], batch.targets[:, :-1])
    assert {CHARACTERS[i] for i in ids[:, 0].tolist()} == {"\n"}


def test_translations_are_in_another_order_and_know_where_words_come_from():
    from models.vocabulary import TRANSLATIONS

    back = {zh: en for words in TRANSLATIONS.values() for en, zh in words.items()}
    moved = 0
    for made in sentences(300, 9, True):
        assert len(made.chinese) == len(made.origin)
        assert {*made.english, *made.chinese} <= set(TRANSLATION)
        places = []
        for word, origin in zip(made.chinese, made.origin, strict=True):
            if word in MEANINGS:
                assert made.english[origin] == back[word]
                places.append(origin)
        moved += places != sorted(places)
        assert held_out(*made.key) and set(made.key) <= set(made.english)
    assert moved > 150


def test_some_translations_by_hand():
    made = {s.english: s.chinese for s in sentences(6000, 2, False)}
    known = {s: c for s, c in made.items() if "this" in s and "was" in s and "yesterday" in s}
    assert known
    for english, chinese in known.items():
        assert chinese[0] == "昨天" and chinese[-1] == "了" and "被" in chinese and "这" in chinese
        assert english[-1] == "yesterday"


def test_translation_masks_padding_and_asks_for_the_next_word():
    batch = Translation().batch(6, generator())
    read, asked = batch.inputs["decoder_input_ids"], batch.targets
    real = asked != IGNORED
    assert torch.equal(
        read[:, 1:][real[:, :-1] & (read[:, 1:] != 0)], asked[:, :-1][real[:, :-1] & (read[:, 1:] != 0)]
    )
    assert {TRANSLATION[i] for i in read[:, 0].tolist()} == {"[CLS]"}
    assert Translation().order_blind() == {"sentences": 0.5}


def test_fetch_asks_for_the_neighbours():
    batch = Fetch().batch(3, generator())
    ids, targets = batch.inputs["input_ids"], batch.targets
    assert targets.shape == (3, LENGTH, len(OFFSETS))
    for (row, at), (k, offset) in itertools.product(
        itertools.product(range(3), range(LENGTH)), enumerate(OFFSETS)
    ):
        there = at + offset
        expected = ids[row, there] - 1 if 0 <= there < LENGTH else IGNORED
        assert targets[row, at, k] == expected


def test_first_asks_at_the_end_which_came_first():
    batch = First().batch(200, generator())
    for ids, targets in zip(batch.inputs["input_ids"].tolist(), batch.targets.tolist(), strict=True):
        length = ids.index(1)
        text = ids[:length]
        assert 3 <= length <= 16 and sorted(i for i in text if i in (2, 3)) == [2, 3]
        assert targets[length] == (2 if text.index(2) < text.index(3) else 3)
        assert [t for t in targets if t != IGNORED] == [targets[length]]
        assert not any(ids[length + 1 :])
    assert First().order_blind() == {"accuracy": 0.5}


@pytest.mark.parametrize("name", TASKS)
def test_every_task_is_described_makes_a_model_and_a_probe(name):
    found = task(name)
    assert isinstance(found, Task) and found.name == name and isinstance(TASKS[name], Words)
    state = torch.get_rng_state()
    one, again, other = (found.batch(4, generator(s)) for s in (1, 1, 2))
    assert torch.equal(one.targets, again.targets)
    assert not torch.equal(next(iter(one.inputs.values())), next(iter(other.inputs.values())))
    assert torch.equal(torch.get_rng_state(), state)
    with torch.random.fork_rng(devices=[]):
        model = found.model().eval()
    probe = found.probe()
    with torch.no_grad():
        logits = model(**one.inputs).logits
        model(**probe.inputs)
    assert logits.shape[:-1] == one.targets.shape
    assert len(probe.tokens) == probe.inputs["input_ids"].shape[1]
    tokenizer = found.tokenizer()
    if tokenizer is not None and name != "characters":
        words = [token for token in probe.tokens if token not in ("[CLS]", "[SEP]", "[MASK]")]
        ids = tokenizer("".join(words) if "zh" in name else " ".join(words), add_special_tokens=False)
        assert tokenizer.convert_ids_to_tokens(ids["input_ids"]) == words


def test_a_task_that_does_not_exist():
    with pytest.raises(SurgeryError, match="no task called 'rolle': choose one of encoder") as error:
        task("rolle")
    assert "没有" in error.value.say("zh")


def test_grammars_and_kinds():
    assert set(GRAMMARS) == set(LANGUAGES) and (*ASKED, "tags") == KINDS
    assert len(English().nouns) == len(Chinese().nouns) == 16
