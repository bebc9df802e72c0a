"""A tactic whose name has another key."""

from pathlib import Path

import partita as pt

pt.tactics_from(Path(__file__).with_suffix(".toml"))
