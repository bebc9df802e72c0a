"""A flag that is a text."""

from pathlib import Path

import partita as pt

pt.tactics_from(Path(__file__).with_suffix(".toml"))
