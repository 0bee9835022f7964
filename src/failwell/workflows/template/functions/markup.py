"""Filters for markup that the engine lacks: `forceescape`, `urlize` and `xmlattr`."""

import re
from html import escape
from typing import Any, cast

from failwell.workflows.template.data_views import type_name, unwrapped
from failwell.workflows.template.template_errors import MistakeType, TemplateMistake

_LINK = re.compile(
    r"(?P<before>^|[\s(<])(?P<url>(?:https?://|www\.)[^\s<>\"']+?)(?P<after>[.,:;!?)]*)(?=$|[\s<>])"
)
_BAD_KEY = re.compile(r"[\s/>=]")


def _escaped(value: object) -> str:
    return escape(str(value), quote=True).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")


def forceescape(value: Any) -> str:
    """The filter `forceescape` of templates: `&`, `<`, `>` and quotes as entities."""
    return _escaped(unwrapped(value))


def xmlattr(value: Any, autospace: Any = True) -> str:
    """The attributes of a tag. Entries that are null are left out."""
    attributes = unwrapped(value)
    if not isinstance(attributes, dict):
        raise TemplateMistake(MistakeType.OPERATION, detail=f"`xmlattr` of {type_name(attributes)}")
    pairs = cast("dict[str, Any]", attributes)
    if any(_BAD_KEY.search(str(key)) for key in pairs):
        raise TemplateMistake(
            MistakeType.ARGUMENTS, detail="of `xmlattr`: a key with a space, `/`, `>` or `=`"
        )
    text = " ".join(f'{_escaped(key)}="{_escaped(part)}"' for key, part in pairs.items() if part is not None)
    return f" {text}" if text and autospace else text


def urlize(value: Any, trim_url_limit: Any = None, nofollow: Any = False, target: Any = None) -> str:
    """The text with links around its addresses, and everything else escaped."""
    relation = ' rel="nofollow noopener"' if nofollow else ' rel="noopener"'
    place = "" if target is None else f' target="{_escaped(target)}"'

    def link(match: re.Match[str]) -> str:
        url = match["url"]
        address = url if url.startswith("http") else f"https://{url}"
        is_long = isinstance(trim_url_limit, int) and len(url) > trim_url_limit
        shown = f"{url[:trim_url_limit]}..." if is_long else url
        return f'{match["before"]}<a href="{address}"{relation}{place}>{shown}</a>{match["after"]}'

    return _LINK.sub(link, _escaped(unwrapped(value)))
