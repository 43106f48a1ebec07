"""A browser that does what people do: Debian's Chromium, driven by Playwright. Whatever goes wrong in a page - an error, a violation of its
policy, a file that it cannot get - is kept, and is wrong."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import drover
import python_packages

PACKAGES = ("playwright==1.65.2", "greenlet==3.5.6", "typing_extensions==4.15.0")
CHROMIUM = shutil.which("chromium")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--disable-sync")
PATIENCE = 60  # seconds
PICTURES = os.environ.get("DROVER_TEST_PICTURES")  # a folder that keeps them
AXE = drover.ROOT / "ui/node_modules/axe-core/axe.min.js"
# Contrast of what is switched off is not judged, and of a terminal its own colours.
RULES = {"exclude": [[".shell"]]}


def playwright():
    if CHROMIUM is None:
        raise unittest.SkipTest("Chromium is not installed here")
    folder = str(python_packages.provide("playwright", PACKAGES))
    if folder not in sys.path:
        sys.path.append(folder)
    import playwright.sync_api
    return playwright.sync_api


def forwarded(test, daemon, uid=None):
    """Where `drover ui` has the page until the test ends, with a ticket."""
    ui = subprocess.Popen(daemon.cli_command("ui", "--no-browser", uid=uid), stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "DROVER_SOCKET": str(daemon.socket)})
    test.addCleanup(ui.stdout.close)
    test.addCleanup(ui.wait)
    test.addCleanup(ui.kill)
    return ui.stdout.readline().strip()


def page_of(test, daemon):
    """Of root's own, until the test ends."""
    browser = Browser()
    test.addCleanup(browser.close)
    page = browser.session()
    page.goto(forwarded(test, daemon))
    return page


class Browser:
    """Closed by its owner. Each session() is a browser of somebody else's: none sees what another keeps."""

    def __init__(self):
        self.api = playwright()
        self.stack = contextlib.ExitStack()
        own = self.stack.enter_context(self.api.sync_playwright())
        self.browser = own.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        self.stack.callback(self.browser.close)

    def close(self):
        self.stack.close()

    def session(self, **settings):
        context = self.browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        return Page(context.new_page())


class Page:
    def __init__(self, page):
        self.page, self.wrong = page, []
        page.set_default_timeout(PATIENCE * 1000)
        page.on("console", lambda message: self.wrong.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("requestfailed", self.failed)

    def __getattr__(self, name):
        return getattr(self.page, name)

    def failed(self, request):
        if request.failure != "net::ERR_ABORTED":  # by who has left the page
            self.wrong.append(f"{request.url}: {request.failure}")

    def log_in(self, address, secret):
        self.page.goto(f"{address}/ui/")
        self.page.get_by_label("Your token").fill(secret)
        self.page.get_by_role("button", name="Log in").click()
        self.page.get_by_role("navigation", name="Views").wait_for()

    def heading(self, text):
        """Waits for it."""
        self.page.get_by_role("heading", level=1).filter(has_text=text).first.wait_for()

    def picture(self, name):
        if PICTURES:
            pathlib.Path(PICTURES).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=f"{PICTURES}/{name}.png")

    def findings(self):
        """What axe finds wrong for people who see little, or nothing, or use no mouse."""
        if not AXE.exists():
            raise unittest.SkipTest("axe is not there: the page was not built here")
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE.read_text())
        found = self.page.evaluate("rules => axe.run(rules)", RULES)
        return [f"{each['id']}: {each['help']}: {[node['html'][:200] for node in each['nodes'][:3]]}" for each in found["violations"]]

    def close(self):
        self.page.context.close()
