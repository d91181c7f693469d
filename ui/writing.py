"""A decoder writes on, without and with the plan of the result on the page."""

from typing import Any

from ui.operating import Operated
from ui.pool import Pool


def write(pool: Pool, done: Operated, seed: int) -> Any:
    """A `surgery.Written` of so many tokens as this server lets a visitor write.

    Drawn at an output temperature of 1, both runs with the same random numbers. Raises what `surgery.generate` raises.
    """
    from surgery import generate

    with pool.use(done.setting.model) as patient:
        return generate(
            patient,
            done.setting.text,
            done.comparison.plan,
            tokens=pool.limits.write_tokens,
            temperature=1.0,
            seed=seed,
        )
