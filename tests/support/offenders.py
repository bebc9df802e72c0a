"""For one test over all files, which lists those that do not pass."""


def none(offenders: list[str]) -> None:
    """Fails with the whole list, a line each."""
    assert not offenders, "\n" + "\n".join(offenders)
