"""Counts as texts say them."""


def counted(count: int, one: str, many: str = "") -> str:
    """`1 dim`, `2 dims`, `2 indices`; `many` is the plural of a word that takes more than an `s`.

    counted(1_000, "value")   -->   "1,000 values"
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def there_are(count: int) -> str:
    """`there is 1`, `there are 2`."""
    return f"there {'is' if count == 1 else 'are'} {count:,}"
