r"""The final answer in a text: \boxed, "answer:", a line ####, the last formula, or a text that is short."""

import itertools
import re
from dataclasses import dataclass, replace

from likewise.grading.spelling import INTEGERS
from likewise.grading.units import UNITS, unit_of
from likewise.reading.latex import Unread

LONGEST = 200_000  # characters of a whole answer; the end is what counts
SHORT = 200  # characters of a text that is an answer by itself
FORMULAS = 2_000  # the same without prose
BOX = re.compile(r"\\(?:boxed|fbox)\s*(?=\{)|\\boxed\s+(?=\S)")
SAID = re.compile(
    r"(?:final\s+answer|correct\s+answer|answer|ans|result|(?:correct|right)\s+(?:option|choice))\s*(?:\*\*)?\s*(?::|=|\bis\b|\bare\b|(?=\$|\\\(|\\\[))\s*(?:\*\*)?\s*:?",
    re.I,
)
OF_ANSWER = re.compile(r"\b(?:of|than|twice|half|double|minus|times|plus|from)\s+(?:the\s+|your\s+|this\s+)?$", re.I)
HASHES = re.compile(r"^####\s*(.+)$", re.M)
FORMULA = re.compile(
    r"\$\$(.+?)\$\$|\\\[((?:(?!\\\[).)+?)\\\]|\\\(((?:(?!\\\().)+?)\\\)|(?<![\\$])\$(?!\s)([^$\n]+?)(?<!\s)\$(?!\d)",
    re.S,
)
DENIED = re.compile(r"\b(?:not|isn't|wrong|incorrect|never|unless|except|or rather|instead of|cannot|false)\b", re.I)
DENIED_BOX = re.compile(
    r"(?:\bnot|n't|\bnever|\bwrong|\bincorrect|\bless than|\bmore than|\brather than|\binstead of|\bcannot)"
    r"\s*(?:be|equal(?: to)?|the (?:\w+ )?answer(?: is)?|\w+ answer(?: is)?|is)?\W*$",
    re.I,
)
TAKEN_BACK = re.compile(r"\b(?:actually|wait|correction|instead|rather|wrong|incorrect|mistake|not)\b", re.I)
WITHDRAWN = re.compile(
    r"\b(?:actually|wait|correction|sorry|scratch\s+that|on\s+second\s+thou?ght|or\s+rather|i\s+(?:was|am)\s+wrong|made\s+a\s+mistake"
    r"|that(?:'s|\s+is)\s+(?:wrong|incorrect|not)|it\s+should\s+be|must\s+be\s+wrong)\b",
    re.I,
)
BEFORE_BOX = re.compile(  # the box is a part of a larger formula
    r"(?:(?<![-:*\n])[-+*/^·×÷√]|\\(?:cdot|times|div|pm|mp|sqrt|[dt]?frac)\s*\{?|\\[dt]?frac\s*\{[^{}]*\}\s*\{|\d|(?<![A-Za-z\\])[A-Za-z])\s*$"
)
BULLET = re.compile(r"(?:(?:^|\n)\s*[-+*]|[A-Za-z]{2,}[.,:]?\s+[-+])\s+$")
AFTER_BOX = re.compile(
    r"\d|\s*(?:[-+](?!\s+[A-Za-z]{2})|\*(?!\*)|/|\^|·|×|÷|!\s*(?:\$|\\[)\]])|\\(?:cdot|times|div|pm|mp|[dt]?frac|sqrt|pi)(?![A-Za-z]))\s*\S|\s*\^"
)
WITH_BOX = re.compile(r"\s*(?:\^\s*\{?\s*(?:\\circ|°)\s*\}?|°|\\?%)")
BOLD = re.compile(r"(?<![\w)\]}*])\*\*(?=[^\s*])([^*\n]*[^\s*])\*\*(?![\w(*])")  # Markdown; n**2 is a power
LEAD = re.compile(
    r"(?:(?:so|thus|hence|therefore|then|finally|clearly|now|and|(?:which|this|that)\s+(?:gives|is|means)|gives|giving"
    r"|we\s+(?:get|have|find|obtain|conclude|see|know|arrive\s+at)|it\s+follows|it\s+is|it's|(?:differentiat|integrat|simplify|expand|factor|substitut|solv|combin|collect|rearrang|evaluat)ing"
    r"(?=,|\s+(?:this|we|gives|yields))|yields?)(?:\s+that)?[,:\s]\s*)+",
    re.I,
)
KINDS = (
    "total|overall|final|exact|computational|asymptotic|worst-case|average|expected|time|space|memory|running|minimum|maximum"
    "|mean|median|correct|desired|required|remaining|numerical|standard|resulting"
)
SUBJECT = re.compile(
    rf"(?:the|its|our)\s+(?:(?:{KINDS})\s+)*(?:cost|complexity|time|memory|runtime|value|solution|sum|total|number|area|volume"
    r"|probability|mean|median|variance|deviation|distance|shape|rank|loss|gradient|count|limit|product|difference|ratio|length"
    r"|perimeter|speed|height|width|weight|price|minimum|maximum|determinant|trace|slope|average|remainder|bound)"
    r"\s+(?:is|equals|becomes|are|=)\s+(?:equal\s+to\s+)?",
    re.I,
)
EQUALS = re.compile(r"([A-Za-z])\s+(?:equals|is\s+equal\s+to)\s+")
TAG = re.compile(r"<answer>((?:(?!</?answer>).)*)</answer>", re.S | re.I)
BRACE = re.compile(r"\\.|[{}]", re.S)  # a brace after a backslash is a sign
THOUGHT = re.compile(r"\A.*</think(?:ing)?>", re.S | re.I)  # what comes before is reasoning
CONNECTED = re.compile(r"[\s,;.*]*(?:(?:and|or)\b[\s,;.*]*)*")
LABEL = re.compile(r"[A-Z][A-Za-z' -]{0,60}[:=]?\s*")
DEFINED = re.compile(r"[\s,;(]*\b(?:where|with)\s+\$?\s*([A-Za-z](?:_\w)?)\s*=\s*([^$=;]+?)\s*\$?\)?\s*\.?$")
DESCRIBED = re.compile(
    r"[\s,;(]*\b(?:where|with)\s+(?:\$[^$=<>]*\$|[A-Za-z])\s+(?:is|are|denotes?|stands?\s+for|being)"
    r"\s+[a-z][a-z' ,-]*\)?\.?$"
)
ORDER = re.compile(r"(?:\\mathcal\s*\{?\s*O\s*\}?|\\(?:Theta|Omega)|O)\s*(?:\\left\s*)?\(")
TYPED_ORDER = re.compile(r"(?<![A-Za-z\\])(O\((?:[^()]|\([^()]*\))*\))")
UNDER = re.compile(r"\b(?:only|if|when|unless|except|instead)\b", re.I)
PREDICATE = re.compile(
    r"((?:the|its|our|their)\s[^.;:=]{1,120}?)\s(?:is|are|equals)\s+(?:equal\s+to\s+|exactly\s+|simply\s+)?"
    r"(\$[^$]+\$|-?\d[\d,./]*(?:\s*(?:\\?%|[A-Za-z]+))?)\s*\.?",
    re.I,
)
NO_SUBJECT = re.compile(  # of these the value is not the answer
    r"\d|\b(?:first|second|third|one|another|other|guess|candidate|option|possible|example|square|cube|root|half|twice|double"
    r"|upper|lower|bound|negative|opposite|inverse|reciprocal|if|assum\w+|suppos\w+|times|plus|minus|per|percent|log\w*|naive"
    r"|previous|original|initial|old|remaining|step|before|after|without|only|least|most)\b",
    re.I,
)
CHANGED = re.compile(  # the value of what stands after these is another number
    r"\b(?:half|twice|thrice|double|triple|guess|candidate|another|other|times|plus|minus|bound)\b"
    r"|\b(?:squared?|cubed?|root|reciprocal|inverse|negative|opposite|complement)\s+of\s+(?:the|our|this|that)\s+"
    r"(?:answer|number|result|value|solution|total|sum)\b",
    re.I,
)
STATED = re.compile(  # there are 12 entries, we need 3 chunks, it takes 2.5 hours
    r"(?:(?:in\s+total|altogether|overall)\b,?\s*)?(?:there\s+(?:is|are|will\s+be)"
    r"|(?:it|this|that)\s+(?:takes|needs|requires|costs|uses|has|weighs)|(?:he|she)\s+(?:pays|gets|has|earns|needs|spends|receives)"
    r"|(?:we|you|they)\s+(?:pay|get|have|earn|need|spend|receive|use))\s+(?:exactly\s+|a\s+total\s+of\s+)?"
    r"(\$[^$]+\$(?!\d)|(?:\\?\$)?-?\d[\d,./]*)((?:\s+[a-z]+(?:/[a-z]+)?){0,3})(?:\s+in\s+total|\s+altogether)?\s*[.!]?",
    re.I,
)
NOT_COUNTED = re.compile(
    r"\b(?:"
    r"more|less|fewer|than|to|be|or|and|not|as|of|times|dozen|hundred|thousand|for|million|billion|percent"
    r"|away|short|left|before|after|per|each|every|in|at|on|from|if|when|only|plus|minus|is|are|that|which"
    r"|with|by|the|a|an|but|too|extra|late|early|ago|off|over|under|out|half|squared|cubed|other|additional"
    r"|further"
    r")\b",
    re.I,
)
HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)|^[ \t]*%[^\n]*$", re.S | re.M)
PHANTOM = re.compile(r"\\[hv]?phantom\s*(?=\{)")
BETWEEN = re.compile(r"(?:[\s$,;.&()\[\]{}*\\]|and|or|text|quad|qquad)*")
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
LIMITED = re.compile(
    r"\b(?:at\s+(?:least|most)|(?:more|less|greater|fewer|larger|smaller|other|bigger|higher|lower)\s+than|up\s+to|about|approximately"
    r"|roughly|nearly|almost|around|close\s+to|minus|plus|times|twice|half(?:\s+of)?|double|below|above|under|over|bounded\s+by"
    r"|exceeds?|negative|if|when|whenever|where|for(?:\s+(?:all|every|any|some))?|at|with|since|because|by|as|from|divided\s+by"
    r"|(?:root|square|cube|multiples?|power|logarithm|fraction|percent)\s+of|modulo|mod)\s*$",
    re.I,
)
UNIT_AFTER = re.compile(r"\s*\$?\s*([A-Za-z]{2,}(?:/[A-Za-z]+)?)\s*(?:[.,]|$)")
UNIT = re.compile(r"\s*[A-Za-z%]+(?:[/-][A-Za-z]+)?\s*\.?")
QUALIFIED = re.compile(  # what stands after the formula changes it: 7 or more, 7 parameters too many
    r"\s*(?:\w+\s+){0,2}(?:or\s+(?:more|less|fewer|greater|higher|lower|so)|too\s+(?:many|few|much)|more|less|fewer|extra"
    r"|short|times|squared|cubed|minus|plus|ago|away)\b",
    re.I,
)
COUNTED = re.compile(r"((?:\s+[a-z]{3,}){1,3})\s*\.?")
LOOSE = re.compile(r"(?<![\\$])\$([^$\n]+?)\$(?!\d)")
PROSE = re.compile(r"[A-Za-z]{2,}\s+[a-z]{2,}\s+[a-z]{2,}")


@dataclass(frozen=True)
class Final:
    """What was taken as the final answer, how it was found, and other candidates (contents of other boxes)."""

    text: str
    how: str
    others: tuple[str, ...] = ()
    unit: str = ""  # a word after the box that is a unit
    where: tuple[str, str] = ("", "")  # a name of the answer and the value that the text states for it
    sure: bool = True  # False where the text goes on, so that a difference may be ours
    listed: bool = False  # whether the boxes stand in a list: 1 and 2
    boxed: bool = False  # whether it and the others are boxes


def final_answer(text: str) -> Final:
    r"""The final answer of a text.

    >>> found = final_answer(r"First $\boxed{3}$. No: $\boxed{4}$.")
    >>> found.text, found.how, found.others
    ('4', 'the last of 2 boxes', ('3',))
    >>> final_answer("So we add.\nAnswer: $x + 1$.").text
    'x + 1'
    """
    text = _without_phantoms(HIDDEN.sub(" ", text[-LONGEST:])).strip()
    text = BOLD.sub(r"\1", THOUGHT.sub("", text)).strip()
    if not text:
        raise Unread("an empty answer")
    if re.match(r"<think(?:ing)?>", text, re.I):
        raise Unread("the reasoning does not end (no </think>)")
    if tags := list(TAG.finditer(text)):
        return _tagged(text, tags)
    if boxes := _boxes(text):
        return _boxed(text, boxes)
    if hashed := HASHES.findall(text):
        return Final(hashed[-1].strip(), "the line after ####")
    if said := list(SAID.finditer(text)):
        if OF_ANSWER.search(text[max(said[-1].start() - 40, 0) : said[-1].start()]):
            raise Unread("what is said is not of the answer itself")
        rest = text[said[-1].end() :]
        found = _after(rest, "after the word answer")
        if WITHDRAWN.search(rest, rest.find(found.text) + len(found.text)):
            raise Unread("the text after the answer may take it back")
        return found
    if found := _short(text) or _predicate(re.split(r"(?<=[.!?])\s+(?=[A-Z])|\n", text)[-1].strip()):
        return found
    text = _without_lead(text)
    if (only := FORMULA.match(text)) and _with_unit(only, text) != _content(only) and UNIT.fullmatch(text, only.end()):
        return Final(_with_unit(only, text), "the whole text")
    if only and (noun := COUNTED.fullmatch(text, only.end())) and not NOT_COUNTED.search(noun[1]):
        return Final(rf"{_content(only)} \text{{{noun[1]}}}", "the whole text")
    if len(text) <= FORMULAS and "\n" not in text and not PROSE.search(re.sub(r"\\[A-Za-z]+|\{[^{}]*\}", " ", text)):
        return Final(text, "the whole text")
    formulas = list(FORMULA.finditer(text)) or list(LOOSE.finditer(text)) or list(CODE.finditer(text))
    if not formulas:
        if len(text) <= SHORT and "\n" not in text:
            return Final(text, "the whole text")
        raise Unread("no final answer was found")
    last = formulas[-1]
    sentence = re.split(r"(?<=[.!?])\s+(?=[A-Z])|\n\s*\n", text[: last.start()])[-1]
    if DENIED.search(sentence) or DENIED.search(text[last.end() : last.end() + 80]):
        raise Unread("the last formula stands in a sentence that denies or limits it")
    if (of := re.search(r"((?:\w+\s+){1,8})(?:is|are|equals|=)\s*$", sentence[-SHORT:])) and CHANGED.search(of[1]):
        raise Unread("the last formula is the value of something else")
    if LIMITED.search(text[max(last.start() - 40, 0) : last.start()]) or QUALIFIED.match(text, last.end()):
        raise Unread("the words before the last formula limit it")
    alone = not re.search(r"\w", text[last.end() :]) and not FORMULA.search(sentence)
    return Final(_with_unit(last, text), "the last formula", sure=alone)


def _tagged(text: str, tags: "list[re.Match[str]]") -> Final:
    """The answer between the last tags <answer>; other tags and boxes outside are other candidates."""
    found = final_answer(tags[-1][1])
    others = [final_answer(each[1]).text for each in tags[:-1]]
    others += [box for box, _, _ in _boxes(TAG.sub(" ", text))]
    others = [each for each in (*found.others, *others) if each != found.text]
    return replace(found, how="the answer tag", others=tuple(dict.fromkeys(others)), boxed=True, listed=False)


def _short(text: str) -> Final | None:
    """An answer in a short line: formulas joined by and, a formula after a label or before a clause, a sentence."""
    if len(text) > FORMULAS or "\n" in text:
        return None
    pattern = FORMULA if FORMULA.search(text) else LOOSE
    formulas = list(pattern.finditer(text))
    outside = pattern.sub(" ", text)
    if len(formulas) > 1 and CONNECTED.fullmatch(outside) and re.search(r"[a-z,;]", outside):
        joined = re.sub(r"\b(and|or)\b", r"\\text{ \1 }", pattern.sub(lambda each: f" {{}}{_content(each)} ", text))
        return Final(joined.replace("{}", "").strip(" ."), "the whole text")
    if len(text) > SHORT:
        return None
    if (
        len(formulas) == 1
        and LABEL.fullmatch(text[: formulas[0].start()])
        and re.fullmatch(r"[\s.]*", text[formulas[0].end() :])
    ):
        before = text[: formulas[0].start()]
        denied = DENIED.search(before) or CHANGED.search(before) or LIMITED.search(before.rstrip(" :="))
        if before.rstrip().endswith((":", "=")) and not denied:
            return Final(_content(formulas[0]), "the formula after the label")
    if formulas and (clause := DESCRIBED.search(text, formulas[0].end())) and not DENIED.search(clause[0]):
        inner = text[: clause.start()]
        if clause.start() == formulas[0].end() and not text[: formulas[0].start()].strip():
            return Final(_content(formulas[0]), "the formula before an explanation")
        return final_answer(inner) if inner.strip() else None
    if INTEGERS.search(plain := text.replace("$", "").rstrip(".")):
        return Final(plain, "the whole text")
    orders = [each for each in formulas if ORDER.match(_content(each))]
    if len(orders) == 1 and len(formulas) > 1 and orders[0] is formulas[0] and not re.search(r"[\d=]", outside):
        between = text[: orders[0].start()]
        if not DENIED.search(text) and not LIMITED.search(between):
            return Final(_content(orders[0]), "the only order", sure=False)
    if found := _stated(text):
        return found
    if not formulas:  # an order as typed: attention has O(N) memory
        formulas = list(TYPED_ORDER.finditer(text))
        outside = TYPED_ORDER.sub(" ", text)
    order = (
        len(formulas) == 1 and ORDER.match(_content(formulas[0])) and re.fullmatch(r"[A-Za-z\s,.:-]+", outside.strip())
    )
    limited = order and (LIMITED.search(text[: formulas[0].start()]) or UNDER.search(text, formulas[0].end()))
    if order and not DENIED.search(text) and not limited:
        return Final(_content(formulas[0]), "the only formula")
    if clause := DEFINED.search(text):
        found = final_answer(text[: clause.start()])
        return replace(found, where=(clause[1], clause[2]))
    return _predicate(text)


def _stated(text: str) -> Final | None:
    """The number or formula of a sentence such as "there are 12 entries", with its unit or what it counts."""
    lead = LEAD.match(text)
    found = STATED.fullmatch(text, lead.end() if lead else 0)
    words = found[2].split() if found else []
    if not found or NOT_COUNTED.search(found[2]) or DENIED.search(text):
        return None
    value = found[1].strip("$").strip() if found[1].endswith("$") else found[1]
    if not words:
        return Final(value, "the value of the sentence")
    return Final(rf"{value} \text{{ {' '.join(words)}}}", "the value of the sentence")


def _predicate(text: str) -> Final | None:
    """The number or formula that a sentence such as "the number of ways is 17" gives."""
    lead = LEAD.match(text)
    found = PREDICATE.fullmatch(text, lead.end() if lead else 0)
    if not found or NO_SUBJECT.search(found[1]) or DENIED.search(found[1]) or LIMITED.search(found[1]):
        return None
    return Final(found[2].strip("$ "), "the end of the sentence")


def _boxed(text: str, boxes: list[tuple[str, int, int]]) -> Final:
    """The last box; boxes with other contents, and an answer after the last box, are other candidates."""
    taken, start, end = boxes[-1]
    if DENIED_BOX.search(text[max(start - 80, 0) : start]):
        raise Unread("the text before the box denies it")
    before, after = text[max(start - 80, 0) : start], text[end:]
    if BEFORE_BOX.search(before) and not BULLET.search(before):
        raise Unread("the box is a part of a formula")
    if with_box := WITH_BOX.match(after):
        taken, after = f"{taken}{with_box[0].strip()}", after[with_box.end() :]
    if AFTER_BOX.match(after) or (not re.search(r"[A-Za-z]{2}", text[:start]) and re.match(r"\s*!", after)):
        raise Unread("the box is a part of a formula")
    others = [box for box, _, _ in boxes if box != boxes[-1][0]]
    if said := list(SAID.finditer(text, end)):
        others.append(_after(text[said[-1].end() :], "").text)
    elif TAKEN_BACK.search(text, end):
        raise Unread("the text after the box may take it back")
    how = f"the last of {len(boxes)} boxes" if len(boxes) > 1 else "the box"
    gaps = [text[one[2] : two[1]] for one, two in itertools.pairwise(boxes)]
    unit = UNIT_AFTER.match(after)
    return Final(
        taken,
        how,
        tuple(dict.fromkeys(others)),
        unit=unit[1] if unit and unit_of(unit[1]) and re.fullmatch(r"-?[\d.,]+", taken) else "",
        sure=not re.search(r"\$[^$]*\d|=|\d\.?\s*$", text[end:]),
        listed=not said and all(BETWEEN.fullmatch(gap) for gap in gaps),
        boxed=not said,
    )


def _without_lead(text: str) -> str:
    """A short text without the words before its formula: so we get, the total cost is."""
    if len(text) > SHORT or "\n" in text:
        return text
    lead = LEAD.match(text)
    rest = text[lead.end() :] if lead else text
    if subject := SUBJECT.match(rest):
        rest = rest[subject.end() :]
    if "$" in rest and not re.fullmatch(r"\$[^$]*\$[\s.]*", rest):
        return text
    return EQUALS.sub(r"\1 = ", rest, count=1) or text


def _after(rest: str, how: str) -> Final:
    """The answer in the line after the word: a formula in it, or the line."""
    line = rest.strip().split("\n")[0].strip()
    if line.startswith(("$$", r"\[")):
        line = rest.strip()
    pattern = FORMULA if FORMULA.search(line) else LOOSE
    formulas = list(pattern.finditer(line))
    if found := _predicate(line):
        return replace(found, how=how)
    if not formulas:
        cut = re.split(r"(?<=[^\d\s])\.\s|(?<=\d)\.\s+(?=[A-Z])", line)[0]
        return Final(cut.strip().rstrip(".").strip("* "), how)
    outside = pattern.sub(" ", line)
    if len(formulas) > 1 and re.fullmatch(r"[\s,;.*]*(?:(?:and|or)[\s,;.*]*)*", outside):
        return Final(", ".join(_content(each) for each in formulas), how)
    if len(formulas) > 1:
        raise Unread("several formulas after the word answer")
    if DENIED.search(outside) or LIMITED.search(line[: formulas[0].start()]):
        raise Unread("the sentence of the answer denies or limits it")
    if re.search(r"\d", outside):
        raise Unread("a number beside the formula of the answer")
    return Final(_with_unit(formulas[0], line), how)


def _with_unit(found: "re.Match[str]", text: str) -> str:
    """The formula, with the word after it if that is a unit or a factor."""
    word = re.match(r"\s*([A-Za-zµμ%]+(?:[/-][A-Za-z]+)?)", text[found.end() :])
    content = _content(found)
    if word and (word[1] in UNITS or word[1].split("/")[0] in UNITS) and word[1] not in ("in", "h", "A", "a"):
        return f"{content} \\text{{ {word[1]}}}"
    if re.match(r"\s*(?:%|\\%)", text[found.end() :]):
        return f"{content}\\%"
    return content


def _content(found: "re.Match[str]") -> str:
    return next(group for group in found.groups() if group is not None).strip()


def _without_phantoms(text: str) -> str:
    """The text without what is not printed."""
    starts = list(PHANTOM.finditer(text))
    ends = _closing_braces(text) if starts else {}
    parts, place = [], 0
    for match in starts:
        if match.start() >= place:
            parts.append(text[place : match.start()])
            place = ends.get(match.end(), len(text)) + 1
    return "".join([*parts, text[place:]])


def _boxes(text: str) -> list[tuple[str, int, int]]:
    """Contents of all boxes in order, each with its start and end; of boxes inside each other the inner one."""
    spans = []
    ends = _closing_braces(text)
    for match in BOX.finditer(text):
        start = match.end()
        if text[start] != "{":
            spans.append((match.start(), start, start + 1))
        elif (end := ends.get(start)) is None:
            raise Unread("a box that is not closed")
        else:
            spans.append((match.start(), start + 1, end))
    inner = [span for span, after in itertools.zip_longest(spans, spans[1:]) if after is None or after[0] >= span[2]]
    return [(text[low:high].strip(), start, high + (text[low - 1] == "{")) for start, low, high in inner]


def _closing_braces(text: str) -> dict[int, int]:
    """For each brace that opens the place of the one that closes it."""
    open_places: list[int] = []
    found = {}
    for match in BRACE.finditer(text):
        if match[0] == "{":
            open_places.append(match.end() - 1)
        elif match[0] == "}" and open_places:
            found[open_places.pop()] = match.end() - 1
    return found
