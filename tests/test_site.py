"""The documentation as pages: all of it is there, what it links to is there, and nothing is loaded from elsewhere."""

import html.parser
import pathlib
import re
import tempfile
import unittest
import urllib.parse

import drover

BUILD_DOCS = drover.ROOT / "scripts/build-docs"
CANNOT = 3  # its exit status where the packages cannot be had
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src", "link": "href"}
PIXEL = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8ffff3f0005fe02fe0def46b8"
                      "0000000049454e44ae426082")


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.anchors, self.classes = set(), set(), set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = {name: value or "" for name, value in attributes}
        self.classes |= set(attributes.get("class", "").split())
        self.anchors |= {attributes[name] for name in ("id", "name") if name in attributes}
        if tag == "a" and "href" in attributes:
            self.links.add(attributes["href"])
        if LOADED.get(tag) in attributes and attributes.get("rel") != "canonical":
            self.loads.add(attributes[LOADED[tag]])


class SiteTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="drover-test-")))
        cls.site, pictures = folder / "site", folder / "pictures"
        pictures.mkdir()
        (pictures / "the-first-page.png").write_bytes(PIXEL)
        built = drover.run([BUILD_DOCS, cls.site, "--pictures", pictures])
        if built.status == CANNOT:
            raise unittest.SkipTest(built.err.strip())
        assert built.status == 0, built
        cls.pages = {path: Page(path.read_text()) for path in cls.site.rglob("*.html")}

    def there(self, page, link):
        """Where a link of a page leads, and its anchor; None for another host."""
        parts = urllib.parse.urlsplit(link)
        if parts.scheme or parts.netloc:
            return None
        place = (page.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else page
        return (place / "index.html" if place.is_dir() else place), urllib.parse.unquote(parts.fragment)

    def test_links_and_anchors_lead_somewhere(self):
        followed = 0
        for page, content in self.pages.items():
            if page.name == "404.html":  # whose links are those of a site at the root of a server
                continue
            for link in content.links | content.loads:
                found = self.there(page, link)
                if found is None:
                    continue
                place, anchor = found
                with self.subTest(page=str(page.relative_to(self.site)), link=link):
                    self.assertTrue(place.is_file())
                    if anchor and place in self.pages:
                        self.assertIn(anchor, self.pages[place].anchors)
                followed += 1
        self.assertGreater(followed, 2000)

    def test_nothing_is_loaded_from_elsewhere(self):
        for page, content in self.pages.items():
            with self.subTest(page=str(page.relative_to(self.site))):
                self.assertEqual([link for link in content.loads if self.there(page, link) is None and not link.startswith("data:")], [])
                self.assertNotIn("mermaid", content.classes, "a program that draws it would be loaded from elsewhere")
        for style in self.site.rglob("*.css"):
            for address in re.findall(r"(?:url\(|@import\s*)[\"']?([^\"')]+)", style.read_text()):
                with self.subTest(style=style.name, address=address):
                    self.assertNotRegex(address, r"^(https?:)?//")

    def test_every_page_can_be_reached_from_the_first(self):
        reached, waiting = set(), [self.site / "index.html"]
        while waiting:
            page = waiting.pop()
            if page in reached:
                continue
            reached.add(page)
            waiting += [found[0] for link in self.pages[page].links if (found := self.there(page, link)) and found[0] in self.pages]
        self.assertEqual({page for page in self.pages if page.name != "404.html"} - reached, set())
        for document in (drover.ROOT / "docs").glob("*.md"):
            self.assertIn(self.site / document.with_suffix(".html").name, reached)

    def test_the_reference_has_every_operation_and_schema(self):
        document = (drover.ROOT / "docs/openapi.yaml").read_text()
        operations = re.findall(r"^ +operationId: (\w+)$", document, re.MULTILINE)
        schemas = re.findall(r"^    (\w+):$", document.partition("\n  schemas:\n")[2], re.MULTILINE)
        self.assertGreater(min(len(operations), len(schemas)), 40)
        anchors = self.pages[self.site / "api-reference.html"].anchors
        self.assertEqual({operation.lower() for operation in operations} - anchors, set())
        self.assertEqual({f"schema-{schema.lower()}" for schema in schemas} - anchors, set())

    def test_pictures_have_a_page(self):
        self.assertIn("pictures/the-first-page.png", self.pages[self.site / "pictures.html"].loads)
        self.assertEqual((self.site / "pictures/the-first-page.png").read_bytes(), PIXEL)


if __name__ == "__main__":
    unittest.main()
