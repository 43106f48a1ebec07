"""What a newcomer reads first works as it is written: each command of each page, in order, on one machine."""

import json
import os
import re
import shutil
import unittest

import drover
import named_images
import newcomer

PAGES = ("README.md", "docs/install.md", "docs/quickstart.md", "examples/train/README.md", "examples/hello-gpu/README.md",
         "examples/gang/README.md", "examples/two-tenants/README.md", "docs/apply.md")
IMAGE_PAGES = ("docs/quickstart.md", "examples/digits/README.md")
IMAGE_SECTIONS = ("Install it", "A daemon", "A program of your own", "An image", "Digits: train a model in a container with one GPU")
# What a test cannot type, and why.
LEFT_OUT = {
    r"scripts/(quickstart|test)\b": "they are tests of their own",
    r"systemctl": "systemd does not run there",
    r"drover restore": "it follows a systemctl",
    r"apparmor_parser": "it changes the machine's kernel",
    r"install_manifest": "the next page wants the installation: BuildTest removes one",
}
# What ends with another status than 0, as the page says.
TOLD_TO_FAIL = {("docs/install.md", "sudo drover doctor")}


def typed_there(text):
    """The lines of a block that can be typed there."""
    return "".join(line for line in text.splitlines(keepends=True) if not any(re.search(what, line) for what in LEFT_OUT))


@unittest.skipIf(os.geteuid() != 0, "needs root: it makes a machine of its own")
class ReaderTest(unittest.TestCase):
    """Reads pages and types what they say."""

    maxDiff = None

    def setUp(self):
        self.machine = newcomer.Machine()
        self.addCleanup(self.leave)
        self.terminal = self.daemon = None

    def leave(self):
        found = self.machine.close()
        if found:
            raise AssertionError("left behind:\n" + "\n".join(found))

    def read(self, page, sections=None):
        """A daemon that the page before has started is still there, unless this page starts one."""
        self.terminal = self.machine.terminal()
        answer = None
        for block in newcomer.blocks(page):
            if (sections is None and block.section == "An image") or (sections is not None and block.section not in sections):
                continue
            if block.kind == "sh":
                answer = self.type(block)
            elif name := newcomer.WRITE_TO.search(block.before):
                self.terminal.type(f"cat >{name[1]} <<'END'\n{block.text}END\n")
            elif not block.kind and not block.before.strip() and answer is not None:
                with self.subTest(str(block)):
                    self.assertEqual(answer, block.text, "the page shows another answer")

    def type(self, block):
        serve = newcomer.SERVE.search(block.text)
        before, after = (block.text[:serve.start()], block.text[serve.end():].strip()) if serve else (block.text, "")
        with self.subTest(str(block)):
            typed = self.terminal.type(typed_there(before))
            failed = [line for line in typed.failed if (block.page, line.split(": exit status")[0]) not in TOLD_TO_FAIL]
            self.assertEqual(failed, [], typed)
        if serve:
            self.assertEqual(after, "", "the daemon keeps its terminal")
            self.serve(serve[0])
        return typed.out

    def serve(self, command):
        """As the page says: it keeps the terminal, and the reader goes on in another one in the same folder."""
        if self.daemon:
            self.daemon.interrupt()
        folder = self.terminal.folder()
        self.terminal.hold(command.split("  #")[0], "Ready, with")
        self.daemon, self.terminal = self.terminal.held, self.machine.terminal(folder)

    def type_and_see(self, text, *words):
        """What must not fail, and what it must show."""
        typed = self.terminal.type(text)
        self.assertEqual(typed.failed, [], typed)
        for word in words:
            self.assertRegex(typed.out + typed.err, word, typed)
        return typed.out


class FirstWordsTest(drover.DaemonTest):
    """What `drover serve` says when it starts."""

    arguments = ("--listen", "127.0.0.1:0")

    def said(self):
        return [line.split(" info ", 1)[-1] for line in self.daemon.read_log().splitlines()]

    def test_where_it_serves_and_what_to_type_come_last(self):
        socket, url, ready = [line for line in self.said() if "audit" not in line][-3:]
        self.assertEqual(socket, f"Serving on '{self.daemon.socket}'")
        host = re.match(r"Serving on (http://127\.0\.0\.1:\d+) for ", url)[1]
        self.assertIn(f"DROVER_HOST={host} DROVER_TOKEN=SECRET drover gpus", url)
        self.assertIn(f"'{self.daemon.state}/credentials'", url)
        self.assertTrue(ready.startswith("Ready, with 8 simulated GPUs: "), ready)
        advice = re.search("'drover( --socket \\S+ gpus)'", ready)[1]
        listed = drover.run(["sh", "-c", f"{drover.BINARY}{advice}"])
        self.assertIn("simulated", listed.out, listed)

    def refused(self, *arguments, **environment):
        """A second daemon, which cannot start."""
        folder = self.daemon.folder / "second"
        ran = drover.run([drover.BINARY, "serve", "--state", folder / "state", "--simulate", "k40m", *arguments],
                         env={**self.daemon.environment, **environment})
        self.assertNotEqual(ran.status, 0, ran)
        self.assertNotIn("Serving on", ran.err)
        return ran

    def test_nothing_is_served_without_a_runtime(self):
        ran = self.refused("--socket", self.daemon.folder / "other/socket", "--runtime", "no-such-runtime")
        self.assertIn("no-such-runtime", ran.err)

    def test_a_misspelt_socket_makes_no_folders(self):
        place = self.daemon.folder / "nonexistent"
        ran = self.refused("--socket", place / "run/socket")
        self.assertIn(f"there is no folder '{place}'", ran.err)
        self.assertFalse(place.exists())


class PagesTest(ReaderTest):
    def test_every_command_of_the_first_pages(self):
        for page in PAGES:
            self.read(page)
        model = json.loads(self.type_and_see("cat ~/training/model.json"))
        self.assertEqual(len(model["weights"]), 3)
        self.type_and_see("drover queue", "default")
        self.assertEqual(len(json.loads(self.type_and_see("drover queue --json"))["queues"]), 1, "what pages made is gone again")

    @unittest.skipIf(shutil.which("mmdebstrap") is None, "mmdebstrap is not installed: scripts/install-dependencies --image")
    def test_the_pages_with_images(self):
        named_images.make_digits_image()
        self.machine.add_image("digits")
        for page in IMAGE_PAGES:
            self.read(page, IMAGE_SECTIONS)


class PathTest(ReaderTest):
    """From nothing to a trained model, and what one does the day after: no command fails, and each is told by an answer before it."""

    def submit(self, options, *words):
        """In the background; returns the id that is shown."""
        started = self.type_and_see(f'drover run --detach {options} -- python3 train.py {" ".join(words)}', r"^\w+\n$")
        return started.strip()

    def test_a_newcomer_s_first_two_days(self):
        self.terminal = self.machine.terminal()
        self.type_and_see("sudo cmake --install build/release --prefix /usr/local; mkdir ~/project; cp examples/train/train.py ~/project; cd ~/project")
        self.serve("sudo drover serve --simulate dgx-a100")
        self.assertIn("'drover gpus' lists them, 'drover run --gpus 1 -- COMMAND' runs on one", self.daemon.screen)
        self.type_and_see("drover gpus", "simulated", "A100")
        self.type_and_see('drover run --gpus 1 -- python3 train.py', "epoch 20: ", r"wrote \S+/project/model.json")
        self.type_and_see("test -O ~/project/model.json; rm ~/project/model.json")

        first = self.submit("--name first --gpus 4", "--epochs", "100000")
        self.terminal.close()  # he goes home
        self.terminal = self.machine.terminal(newcomer.HOME)
        drover.wait_for(lambda: re.search("first .*running", self.type_and_see("drover ps")), "the training to run")
        drover.wait_for(lambda: "epoch 10: " in self.type_and_see(f"drover logs {first}"), "the first lines of the training")

        self.type_and_see("cd ~/project")
        second = self.submit("--name second --gpus 8", "--epochs", "10")
        self.type_and_see("drover ps", "second .*queued", "8 GPUs are wanted and 4 of 8 are free")
        self.type_and_see(f"drover explain {second}", "8 GPUs are wanted and 4 of 8 are free", "what helps", "ask for 4 GPUs")
        self.type_and_see(f"drover stop {second}")
        again = self.submit("--name second --gpus 4", "--epochs", "10")
        self.type_and_see(f"drover logs --follow {again}", "GPUs of this task: GPU-", "epoch 10: ")
        self.type_and_see("test -s ~/project/model.json")
        self.type_and_see(f"drover stop {first}; drover logs --follow {first}", "epoch 10: ")
        self.type_and_see(f"drover ps --all; drover rm {first} {second} {again}", "second", "first")
        self.assertNotIn(first, self.type_and_see("drover ps --all"))


class BuildTest(ReaderTest):
    def test_what_is_installed_is_built(self):
        """`scripts/build` names one target; what `cmake --install` takes out of the build is made by it."""
        target = re.search(r"--target (\S+)", (drover.ROOT / "scripts/build").read_text())[1]
        inputs, commands = (drover.run(["ninja", "-C", drover.BUILD, "-t", tool, target]) for tool in ("inputs", "commands"))
        self.assertEqual((inputs.status, commands.status), (0, 0), inputs)
        made = {*inputs.out.splitlines(), *re.findall(rf"(?:>|man-pages) {drover.BUILD}/(\S+)", commands.out)}
        taken = {match for script in drover.BUILD.rglob("cmake_install.cmake")
                 for match in re.findall(rf'"{re.escape(str(drover.BUILD))}/([^"]+?)/?"', script.read_text()) if "cmake_install" not in match}
        self.assertIn("packaging/drover.bash", taken)
        self.assertEqual(taken - made, {"packaging/drover.service", "${CMAKE_INSTALL_MANIFEST}"}, "the first is made when CMake configures")

    def test_it_is_installed_and_removed(self):
        self.terminal = self.machine.terminal()
        before = self.files()
        self.type_and_see("sudo cmake --install build/release --prefix /usr/local")
        self.type_and_see("cd ~; drover --version; sudo drover --version", "drover 0")
        share = self.machine.path("/usr/local/share")
        for name in ("man/man1/drover.1", "man/man1/drover-run.1", "bash-completion/completions/drover", "zsh/site-functions/_drover",
                     "fish/vendor_completions.d/drover.fish"):
            self.assertIn("drover", (share / name).read_text())
        pages = list((share / "doc/drover").rglob("*.md"))
        self.assertIn(share / "doc/drover/docs/quickstart.md", pages)
        for page in pages:
            for link in re.findall(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)", page.read_text()):
                with self.subTest(page=page.name, link=link):
                    self.assertTrue((page.parent / link).exists())
        self.type_and_see("cd ~/drover; sudo xargs rm < build/release/install_manifest.txt")
        self.assertEqual(self.files(), before)

    def files(self):
        return self.type_and_see("find /usr/local ! -type d | sort")


if __name__ == "__main__":
    unittest.main()
