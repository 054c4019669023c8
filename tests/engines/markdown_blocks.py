"""What markdown-it-py reads of Markdown texts: reads a JSON list of texts, writes one of [headings, verbatim].

headings: [first line, line after, level, text] of each that stands in no quote and no list; verbatim: the lines that go on with
a fence, an HTML block or indented code.
"""

import json
import sys

from markdown_it import MarkdownIt


def describe(text):
    headings, verbatim, tokens = [], [], MarkdownIt("commonmark").parse(text)
    for token, inline in zip(tokens, tokens[1:] + [None]):
        if token.type == "heading_open" and token.level == 0:
            headings.append([*token.map, int(token.tag[1]), inline.content])
        if token.type in ("fence", "html_block", "code_block"):
            verbatim += range(token.map[0] + 1, token.map[1])
    return headings, verbatim


json.dump([describe(text) for text in json.load(sys.stdin)], sys.stdout)
