import pytest

from workshop.digits import Template, minus, small


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.2728, "1.3"),
        (0.7784, "0.78"),
        (0.0341, "0.034"),
        (0.001, "0.0010"),
        (123.4, "123"),
        (-0.35, "−0.35"),
        (0.000999, "1.0e-03"),
        (1.23e-7, "1.2e-07"),
        (-1.23e-7, "−1.2e-07"),
        (0.0, "0"),
    ],
)
def test_small_numbers_have_two_digits_that_count(value, text):
    assert small(value) == text


@pytest.mark.parametrize(("text", "said"), [("-0.35", "−0.35"), ("-0", "0"), ("-0.00", "0.00"), ("4", "4")])
def test_a_minus_sign_is_one_and_zero_has_none(text, said):
    assert minus(text) == said


def test_numbers_in_a_template_get_it_and_words_do_not():
    text = Template().format("{a[x]:.1f}, {b}, {c}", a={"x": -2.0}, b=-3, c="-1e9")
    assert text == "−2.0, −3, -1e9"
