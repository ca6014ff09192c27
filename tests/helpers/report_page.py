"""A page as a browser's parser meets it."""

import json
from html.parser import HTMLParser


class Page(HTMLParser):
    """Tags, attributes and scripts of a page as a browser's parser meets them."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.scripts, self.text, self._script = [], [], [], None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self._script = dict(attrs)
            self.scripts.append([self._script, ""])

    def handle_endtag(self, tag):
        if tag == "script":
            self._script = None

    def handle_data(self, data):
        if self._script is not None:
            self.scripts[-1][1] += data
        else:
            self.text.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]

    def one(self, **wanted):
        found = [
            a for _, a in self.tags if all(a.get(k) == v for k, v in wanted.items())
        ]
        assert len(found) == 1, found
        return found[0]

    @property
    def data(self):
        return json.loads(next(t for a, t in self.scripts if a.get("id") == "data"))

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())  # also joins at no-break spaces
