"""Lines that begin with `<` and are words all the same: placeholders such as `<fill in: events, or NONE>`, arrows.

CommonMark has seven ways to begin a block of HTML. The first six begin with a mark (`<!`, `<?`) or with a name from a
list that ends there (by a blank, `>`, `/>` or the end of the line); the seventh is a whole tag, alone on its line. What
is none of them beyond doubt is words. A line that is not ASCII is doubted, since two letters of other alphabets count
as `s` and `k` where case does not matter.
"""

from __future__ import annotations

import re

from workpacket.lazy_pattern import lazy_pattern

# The names of the first and the sixth way.
HTML_NAME = lazy_pattern(
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt"
    "|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu"
    "|menuitem|nav|noframes|ol|optgroup|option|p|param|pre|script|search|section|source|style|summary|table|tbody|td"
    "|textarea|tfoot|th|thead|title|tr|track|ul",
    re.IGNORECASE,
)
_NAME = lazy_pattern(r"<([A-Za-z][A-Za-z0-9-]*)")
# Without a value, a tag is made of nothing but this.
_BARE_TAG = lazy_pattern(r"<[A-Za-z0-9_:.\-\s/]*>\s*\Z")


def begins_no_html(body: str) -> bool:
    """Whether the line, which begins with `<`, is surely not the beginning of a block of HTML."""
    if not body.isascii():
        return False
    named = _NAME.match(body)
    if named is None:
        return body[1:2] not in ("/", "!", "?")
    after = body[named.end() : named.end() + 1]
    if after and after not in "/>" and not after.isspace():
        return True  # `<https://...`, `<name,`: neither a name from the list nor a tag ends here
    return HTML_NAME.fullmatch(named[1]) is None and "=" not in body and _BARE_TAG.match(body) is None
