"""Tactics in tables of their own, of which none is named."""

from pathlib import Path

import partita as pt

pt.tactics_from(Path(__file__).with_suffix(".toml"))
