"""What the project says to people, in English and in Chinese: sentences, and errors that carry both."""

from typing import Any, NamedTuple

LANGUAGES = ("en", "zh")


class Words(NamedTuple):
    """One text in both languages."""

    en: str
    zh: str

    def say(self, lang: str = "en") -> str:
        """The text in `lang` ("en" or "zh"). Raises LanguageError for another language."""
        if lang not in LANGUAGES:
            raise LanguageError(
                f"Language {lang!r} is not known: choose one of {', '.join(LANGUAGES)}.",
                f"没有语言 {lang!r}：请选 {'、'.join(LANGUAGES)} 之一。",
            )
        return getattr(self, lang)


class SurgeryError(Exception):
    """Base of every error that this project raises on purpose.

    `str(error)` is the English sentence; `error.say("zh")` the Chinese one. A sentence names the value,
    the allowed set and the next step.
    """

    def __init__(self, en: str, zh: str):
        super().__init__(en)
        self.words = Words(en, zh)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.words, self.__dict__)

    def say(self, lang: str = "en") -> str:
        """The sentence in `lang`, "en" or "zh"."""
        return self.words.say(lang)


def _again(kind: type[SurgeryError], words: Words, state: dict) -> SurgeryError:
    """An error that crossed from another process."""
    error = kind.__new__(kind, words.en)
    error.__dict__.update(state)
    return error


class LanguageError(SurgeryError, ValueError):
    """A language that nothing is said in."""
