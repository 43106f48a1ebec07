#!/usr/bin/env python3
"""How soon the web page is there, and how fast it hears what happens: in Debian's Chromium, beside a daemon with many tasks.

    bench/page.py [--tasks 10000] [--rounds 15]

Needs root, a release build with the page, and what the page's tests need. The events are those of an array that comes at once, and are told beside
a reader of the plain stream over TCP, in the same run.
"""

import argparse
import http.client
import pathlib
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
sys.dont_write_bytecode = True
import browser  # noqa: E402
import test_page  # noqa: E402

EVENTS = 4096
LATER = {"command": ["sleep", "600"], "gpus": 8, "begin": "2h"}
TOKEN = test_page.TOKENS["root"]
FIRST_PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0].startTime"
FILES = """() => performance.getEntriesByType('navigation').concat(performance.getEntriesByType('resource'))
  .filter(each => new URL(each.name).pathname.startsWith('/ui')).map(each => each.encodedBodySize)"""
# Resolves to how long it took from the first event to the last, as the page's own sockets hear them. What was there before is told first.
HEAR = """([token, count]) => new Promise(done => {
  const socket = new WebSocket(location.origin.replace('http', 'ws') + '/v1/socket');
  socket.binaryType = 'arraybuffer';
  let heard = -1, first = 0, rest = '';
  const decoder = new TextDecoder();
  socket.onopen = () => socket.send(JSON.stringify({path: '/v1/events?limit=1', authorization: 'Bearer ' + token}));
  socket.onmessage = ({data}) => {
    if (typeof data === 'string') return window.listens = true;
    const pieces = (rest + decoder.decode(data, {stream: true})).split('\\n\\n');
    rest = pieces.pop();
    for (const piece of pieces) if (piece.includes('"task_queued"') && ++heard === 1) first = performance.now();
    if (heard === count) { socket.close(); done((performance.now() - first) / 1000); }
  };
})"""


def hear_plainly(address, count, took, ready):
    connection = http.client.HTTPConnection(address.removeprefix("http://"))
    connection.request("GET", "/v1/events?limit=1", headers={"Authorization": f"Bearer {TOKEN}", "Accept": "text/event-stream"})
    answer = connection.getresponse()
    ready.set()
    heard, first = -1, None
    while heard < count:
        if b'"task_queued"' in answer.readline():
            heard += 1
            first = time.monotonic() if heard == 1 else first
    took.append(time.monotonic() - first)
    connection.close()


def events(test, page):
    """A second, in the page and plainly."""
    took, ready = [], threading.Event()
    plain = threading.Thread(target=hear_plainly, args=(test.address(), EVENTS, took, ready), daemon=True)
    plain.start()
    page.evaluate(f"() => {{ window.listens = false; window.heard = ({HEAR})(['{TOKEN}', {EVENTS}]) }}")
    page.page.wait_for_function("() => window.listens")
    ready.wait(60)
    test.daemon.api("POST", "/v1/tasks", {**LATER, "array": f"0-{EVENTS - 1}"}, timeout=300)
    seconds = page.evaluate("() => window.heard")
    plain.join(60)
    return EVENTS / seconds, EVENTS / took[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    test = test_page.PageTest()
    test_page.PageTest.setUpClass()
    try:
        for first in range(0, options.tasks, EVENTS):
            test.daemon.api("POST", "/v1/tasks", {**LATER, "array": f"{first}-{min(first + EVENTS, options.tasks) - 1}"}, timeout=300)
        painted, files = [], []
        for _ in range(options.rounds):
            page = test.browser.session()
            page.log_in(test.address(), TOKEN)
            page.goto(f"{test.address()}/ui/")
            page.heading("")
            painted.append(page.evaluate(FIRST_PAINT))
            files = page.evaluate(FILES)
            page.close()
        page = test.browser.session()
        page.log_in(test.address(), TOKEN)
        heard = [events(test, page) for _ in range(3)]
    finally:
        test.daemon.kill()
        test_page.PageTest.doClassCleanups()
    print("| | | |\n| --- | --- | --- |")
    print(f"| files of the first view, compressed | {sum(files) / 1000:.1f} kB | {len(files)} |")
    print(f"| first paint, {options.tasks} tasks | {statistics.median(painted):.0f} ms | {min(painted):.0f} – {max(painted):.0f} |")
    print(f"| events a second, a page | {statistics.median(each for each, _ in heard):.0f} | beside a reader of the plain stream: "
          f"{statistics.median(each for _, each in heard):.0f} |")


if __name__ == "__main__":
    browser.playwright()
    main()
