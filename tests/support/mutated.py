"""Texts with typing slips."""

import random
import re

WORD = re.compile(r"\s+|\w+|\S")
KINDS = (re.compile(r"\d+"), re.compile(r"[a-z]\w*"), re.compile(r"[A-Z]\w*"), re.compile(r"[-+*/]"), re.compile(r"\S"))
SIGNS = [*"ab01_@#*+-/.,;:=<>()[]{}\n \"'", "é", "²", "\t", "\x00", "\f", "\u2028", "1e400", "99999999999999999999", "-1", "0"]


def mutated(source: str, chance: random.Random) -> str:
    """The text with a few words removed, repeated, swapped or replaced by others, often of the same kind."""
    words = WORD.findall(source)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        at = chance.randrange(len(words)) if words else 0
        match chance.randrange(7) if words else 0:
            case 0:
                words.insert(at, chance.choice(SIGNS))
            case 1:
                del words[at]
            case 2:
                other = chance.randrange(len(words))
                words[at], words[other] = words[other], words[at]
            case 3:
                words[at] = chance.choice(SIGNS)
            case 4:
                words = words[:at] if chance.random() < 0.2 else [*words[:at], words[at], *words[at:]]
            case _:
                kind = next((each for each in KINDS if each.fullmatch(words[at])), None)
                words[at] = chance.choice([each for each in words if kind is None or kind.fullmatch(each)] or words)
    return "".join(words)
