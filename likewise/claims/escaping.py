"""Text of strangers made safe to print: claims are data, whatever they say."""


def printable(text: str) -> str:
    r"""The text with everything a terminal would obey, or a reader would not see, written out.

    Control characters, line ends, marks that turn the direction of writing, spaces other than the plain one.

    >>> print(printable("red \x1b[31m, turned \u202e, two\nlines"))
    red \x1b[31m, turned \u202e, two\nlines
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)
