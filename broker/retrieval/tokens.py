import Stemmer

from broker.retrieval.segments import _HUMP, _NUMBERED, _PATH, _SEGMENT, _WORDS
from broker.retrieval.spelling import plain
from broker.retrieval.words import IRREGULAR, STOP_WORDS

_st = Stemmer.Stemmer("english")
_stem = _st.stemWord
STRIP = {"s", "d", "ll", "re", "ve", "m"}


def fold(s):
    return s.casefold()[:64]


def word(w, stop=False):
    low = fold(w)
    if stop and low in STOP_WORDS:
        return []
    if low.isascii() and low.isalpha():
        out = [_stem(IRREGULAR.get(low, low))]
    else:
        out = [low]
    if w[1:].lower() != w[1:]:
        p = _HUMP.split(w)
        if len(p) > 1:
            out = [low] + [x for q in p for x in word(q, stop)]
    if len(out) == 1 and not low.isalpha():
        m = _NUMBERED.fullmatch(w)
        if m:
            out += word(m[1], stop) + [m[2][:64]]
    return out


def name(raw, stop=False):
    raw = raw.replace("’", "'")
    words = _WORDS.findall(raw)
    if len(words) == 1:
        return word(raw, stop)
    if len(words) >= 2 and raw[-len(words[-1]) - 1] == "'":
        tail = words[-1].lower()
        if tail in STRIP:
            return name(raw[: -len(tail) - 1], stop)
        if tail == "t" and len(words) == 2:
            return [] if stop else [fold(raw)]
    out = [fold(raw)]
    for seg in _PATH.split(raw):
        ws = _WORDS.findall(seg)
        if len(ws) > 1 and seg != raw:
            out.append(fold(seg))
        for w in ws:
            out += word(w, stop)
    return out


def segs(text, stop=False):
    for m in _SEGMENT.finditer(plain(text)):
        k = m.lastgroup
        if k == "name":
            yield from name(m[0], stop)
        elif k == "sign":
            yield m[0]
        else:
            r = m[0].casefold()
            if stop:
                if len(r) == 1:
                    yield r
            else:
                yield from r
            for i in range(len(r) - 1):
                yield r[i : i + 2]


def terms(text):
    return list(segs(text))


def query_terms(text):
    q = list(dict.fromkeys(segs(text, True))) or list(dict.fromkeys(segs(text)))
    return q[:64]
