"""The web page, as people use it: in a browser, by what they see."""

import json
import pathlib
import re
import unittest

import browser
import drover

TOKENS = {"root": "roots-token-for-the-page", "nobody": "nobodys-token-for-the-page"}
NASTY = "<img src=x onerror=alert(1)>\x1b[2J\u202e" + "wide" * 40
MANY = 10_000


class PageTest(drover.DaemonTest):
    profile = "dgx-a100"
    arguments = ("--listen", "127.0.0.1:0")

    @classmethod
    def setUpClass(cls):
        browser.playwright()  # or skip
        super().setUpClass()
        cls.give_tokens()
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    @classmethod
    def give_tokens(cls):
        file = cls.daemon.state / "credentials"
        drover.replace(file, "".join(f"{user}:{token}\n" for user, token in TOKENS.items()))
        file.chmod(0o600)

    def address(self):
        return "http://" + re.findall(r"http://(127\.0\.0\.1:\d+)", self.daemon.read_log())[-1]

    def session(self, user="root", **settings):
        page = self.browser.session(**settings)
        self.addCleanup(page.close)
        page.log_in(self.address(), TOKENS[user])
        return page

    def setUp(self):
        self.addCleanup(self.daemon.end_tasks)

    def assert_sound(self, page, *, but=()):
        """Nothing went wrong in it."""
        self.assertEqual([line for line in page.wrong if not any(each in line for each in but)], [])


class MachineTest(PageTest):
    def test_who_shows_no_token_sees_nothing_and_a_wrong_one_is_told(self):
        page = self.browser.session()
        self.addCleanup(page.close)
        page.goto(f"{self.address()}/ui/")
        page.get_by_label("Your token").fill("wrong-and-long-enough")
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("alert").filter(has_text="The token or password is wrong").wait_for()
        self.assertNotIn("A100", page.content())
        self.assert_sound(page, but=("401",))

    def test_it_shows_each_gpu_who_has_it_and_how_they_are_joined_as_it_changes(self):
        page = self.session()
        page.heading("8 of 8 GPUs free")
        task = self.daemon.submit("sleep", 600, gpus=3, uid=drover.NOBODY)
        page.heading("5 of 8 GPUs free")
        page.get_by_text(task).first.wait_for()
        self.assertEqual(page.get_by_role("table").first.locator("tbody tr").count(), 8)
        page.picture("machine")
        self.daemon.end_task(task)
        page.heading("8 of 8 GPUs free")
        self.assert_sound(page)

    def test_a_gpu_that_fell_ill_says_why(self):
        page = self.session()
        self.addCleanup(self.daemon.set_faults, {})
        page.heading("of 8 GPUs free")
        gpu = self.daemon.api("GET", "/v1/gpus")["gpus"][2]["uuid"]
        self.daemon.api("PUT", f"/v1/cordons/{gpu}", {"reason": "its fan is loud"})
        self.addCleanup(self.daemon.request, "DELETE", f"/v1/cordons/{gpu}")
        page.get_by_text("its fan is loud").wait_for()
        self.assert_sound(page)

    def test_it_goes_on_when_the_daemon_was_killed_and_started_again(self):
        page = self.session()
        page.heading("8 of 8 GPUs free")
        self.daemon.kill()
        page.get_by_text("The daemon does not answer").wait_for()
        port = self.address().rsplit(":", 1)[1]
        self.daemon.arguments = [f"127.0.0.1:{port}" if word == "127.0.0.1:0" else word for word in self.daemon.arguments]
        self.daemon.start()
        self.daemon.submit("sleep", 600, gpus=1)
        page.heading("7 of 8 GPUs free")
        self.assertEqual(page.get_by_text("The daemon does not answer").count(), 0)

    def test_two_users_do_not_see_each_other_s(self):
        self.daemon.submit("sleep", 600, gpus=1, name="roots-own")
        own = self.daemon.submit("sleep", 600, gpus=1, name="nobodys-own", uid=drover.NOBODY)
        for user, seen, hidden in (("nobody", "nobodys-own", "roots-own"), ("root", "roots-own", None)):
            page = self.session(user)
            page.goto(f"{self.address()}/ui/tasks")
            page.get_by_text(seen).wait_for()
            if hidden:
                self.assertNotIn(hidden, page.content())
            self.assert_sound(page)
        root = self.daemon.api("GET", "/v1/tasks?summary=true&active=true")["tasks"][0]["task"]["id"]
        page = self.session("nobody")
        page.goto(f"{self.address()}/ui/tasks/{root if root != own else ''}")
        page.get_by_role("alert").wait_for()


class TaskTest(PageTest):
    def test_a_task_is_submitted_watched_and_stopped(self):
        page = self.session("nobody")
        page.get_by_role("link", name="Submit", exact=True).click()
        page.get_by_label("Command", exact=True).fill("sh -c 'for i in $(seq 100); do echo line $i; done; sleep 600'")
        page.get_by_label("GPUs", exact=True).fill("2")
        page.get_by_text("It would start at once").wait_for()
        self.assertIn("--gpus 2", page.get_by_label("As a command line").input_value())
        self.assertEqual(json.loads(page.get_by_label("As JSON").input_value())["gpus"], 2)
        page.picture("submit")
        page.get_by_role("button", name="Submit").click()
        page.get_by_text("line 100", exact=True).wait_for()
        page.get_by_label("Only lines with").fill("line 7")
        self.assertEqual(page.locator(".output span").count(), 11)
        page.picture("task")
        page.get_by_role("button", name="Stop", exact=True).click()
        page.get_by_text("killed", exact=True).wait_for()
        self.assert_sound(page)

    def test_what_is_typed_on_one_side_stands_on_the_others(self):
        page = self.session("nobody")
        page.get_by_role("link", name="Submit", exact=True).click()
        line = page.get_by_label("As a command line")
        line.fill("drover run --gpus 4 --name 'my train' -e A=1 -- python3 -c 'print(1)'")
        self.assertEqual(page.get_by_label("Name", exact=True).input_value(), "my train")
        self.assertEqual(json.loads(page.get_by_label("As JSON").input_value()),
                         {"gpus": 4, "name": "my train", "env": {"A": "1"}, "command": ["python3", "-c", "print(1)"]})
        page.get_by_label("As JSON").fill('{"gpus": 9}')
        page.get_by_text("9 GPUs are asked for, but this machine has 8").wait_for()
        line.fill("drover run --nonsense 1")
        page.get_by_text("--nonsense is not known here").wait_for()

    def test_what_it_uses_is_drawn_as_it_runs_and_summed_up_when_it_has_ended(self):
        task = self.daemon.submit("sleep", 600, gpus=1)
        self.daemon.wait_until_running(task)
        self.daemon.set_faults({gpu: {"utilization": {"gpu": 40}} for gpu in self.daemon.task(task)["gpus"]})
        self.addCleanup(self.daemon.set_faults, {})
        page = self.session()
        page.goto(f"{self.address()}/ui/tasks/{task}/use")
        page.get_by_text("GPU: mean 40 %").wait_for()
        page.get_by_text(re.compile("^Memory: mean [1-9]")).wait_for()
        self.assertGreaterEqual(page.locator(".plot canvas").count(), 3)
        self.daemon.set_faults({gpu: {"utilization": {"gpu": 90}} for gpu in self.daemon.task(task)["gpus"]})
        page.get_by_text("GPU: mean 90 %").wait_for()
        page.picture("use")
        page.get_by_label("Of the last").select_option("An hour")
        page.get_by_text(re.compile("GPU: mean [0-9]+ %, greatest [0-9]+ %")).wait_for()
        self.daemon.stop_task(task)
        self.daemon.wait_until_final(task)
        page.get_by_text(re.compile("killed after")).wait_for()
        page.get_by_text("GPU use, mean").wait_for()
        self.assertEqual(page.findings(), [])
        self.assert_sound(page)

    def test_files_are_looked_at_and_taken(self):
        task = self.daemon.submit(command=["sh", "-c", "mkdir -p out; echo found > out/deep.txt; head -c 3000 /dev/urandom > noise; sleep 600"], uid=drover.NOBODY)
        self.daemon.wait_until_running(task)
        page = self.session("nobody")
        page.goto(f"{self.address()}/ui/tasks/{task}/files")
        page.get_by_role("button", name="out/").click()
        page.get_by_role("button", name="deep.txt", exact=True).click()
        page.get_by_text("found").wait_for()
        page.get_by_role("button", name="Back to the folder").click()
        with page.page.expect_download() as download:
            page.get_by_role("button", name="Take deep.txt").click()
        self.assertEqual(pathlib.Path(download.value.path()).read_text(), "found\n")
        page.get_by_role("button", name="Up").click()
        page.get_by_role("button", name="noise", exact=True).click()
        page.get_by_text("It is not text").wait_for()
        self.assert_sound(page)

    def test_a_shell_runs_in_the_task_s_container(self):
        task = self.daemon.submit("sleep", 600, gpus=1, uid=drover.NOBODY)
        self.daemon.wait_until_running(task)
        page = self.session("nobody")
        page.goto(f"{self.address()}/ui/tasks/{task}/terminal")
        page.locator(".xterm-rows").filter(has_text=re.compile(r"[$#]")).wait_for()
        page.keyboard.type("printf '\\033[38;2;255;0;0mred%s\\033[0m\\n' $((6*7)); id -u\n")
        page.locator(".xterm-rows").filter(has_text="red42").wait_for()
        page.locator(".xterm-rows").filter(has_text=str(drover.NOBODY)).wait_for()
        color = page.evaluate("() => [...document.querySelectorAll('.xterm-rows span')].filter(e => e.textContent.startsWith('red42')).map(e => getComputedStyle(e).color)")
        self.assertEqual(color, ["rgb(255, 0, 0)"])
        page.picture("terminal")
        page.keyboard.type("exit\n")
        page.get_by_text("The shell has ended, with status 0").wait_for()
        self.assert_sound(page)

    def test_why_it_waits_and_what_helps(self):
        self.daemon.submit("sleep", 600, gpus=6)
        task = self.daemon.submit("sleep", 600, gpus=4, name="waits")
        page = self.session()
        page.goto(f"{self.address()}/ui/tasks")
        page.get_by_text("4 GPUs are wanted and 2 of 8 are free").wait_for()
        page.get_by_role("link", name=re.compile("waits")).click()
        page.get_by_text("ask for 2 GPUs").wait_for()
        page.get_by_role("link", name="Submit it so").first.click()
        drover.wait_for(lambda: page.get_by_label("Name", exact=True).input_value() == "waits", "the form to be filled")
        gpus = page.get_by_label("GPUs", exact=True)
        self.assertEqual(gpus.input_value(), "2")
        page.get_by_text("It would start at once").wait_for()
        gpus.fill("5")
        page.get_by_role("button", name="ask for 2 GPUs").click()
        self.assertEqual(gpus.input_value(), "2")
        self.daemon.end_task(task)

    def test_names_and_output_that_mean_harm_are_text(self):
        script = "printf '%b' '<script>alert(1)</script> \\033]0;title\\007\\033[2Jend'; echo; sleep 600"
        name = NASTY.replace("\x1b", "").replace("\u202e", "")
        task = self.daemon.submit(command=["sh", "-c", script], name=name[:60])
        self.daemon.wait_for_output(task, "end")
        page = self.session()
        for place in ("", "/tasks", f"/tasks/{task}", f"/tasks/{task}/events", f"/tasks/{task}/definition"):
            page.goto(f"{self.address()}/ui{place}")
            page.get_by_role("heading", level=1).wait_for()
        page.goto(f"{self.address()}/ui/tasks/{task}")
        page.get_by_text("<script>alert(1)</script> end").wait_for()
        self.assertEqual(page.locator("img").count(), 0)
        self.assert_sound(page)


class EverybodyTest(PageTest):
    """People who see little, or nothing, use no mouse, or have a small screen."""

    def test_axe_finds_nothing(self):
        self.daemon.submit("sleep", 600, gpus=6)
        task = self.daemon.submit(command=["sh", "-c", "echo said; sleep 600"], gpus=1)
        self.daemon.submit("sleep", 600, gpus=4)
        self.daemon.wait_for_output(task, "said")
        for scheme in ("light", "dark"):
            page = self.session(color_scheme=scheme)
            for place in ("", "/tasks", f"/tasks/{task}", f"/tasks/{task}/use", f"/tasks/{task}/files", f"/tasks/{task}/terminal", f"/tasks/{task}/events", "/submit", *OTHERS):
                with self.subTest(scheme=scheme, place=place):
                    page.goto(f"{self.address()}/ui{place}")
                    page.get_by_role("heading", level=1).wait_for()
                    page.wait_for_timeout(500)
                    self.assertEqual(page.findings(), [])

    def test_it_fits_a_phone(self):
        task = self.daemon.submit("sleep", 600, gpus=1, name="n" * 60)
        page = self.session(viewport={"width": 390, "height": 800})
        for place in ("", "/tasks", f"/tasks/{task}", f"/tasks/{task}/use", "/submit", *OTHERS):
            with self.subTest(place):
                page.goto(f"{self.address()}/ui{place}")
                page.get_by_role("heading", level=1).wait_for()
                page.wait_for_timeout(300)
                self.assertLessEqual(page.evaluate("() => document.documentElement.scrollWidth"), 390)
        page.picture("phone")


OTHERS = ("/services", "/schedules", "/queues", "/settings")


class ManyTest(PageTest):
    def setUp(self):
        self.addCleanup(self.daemon.kill)  # one after the other they would take minutes to end

    def test_ten_thousand_tasks_are_a_list_of_what_is_seen(self):
        for first in range(0, MANY, MANY // 3):
            last = min(first + MANY // 3, MANY) - 1
            self.daemon.api("POST", "/v1/tasks", {"command": ["sleep", "600"], "gpus": 8, "begin": "2h", "array": f"{first}-{last}"}, timeout=300)
        page = self.session()
        painted = page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0].startTime")
        page.get_by_role("link", name="Tasks", exact=True).click()
        page.heading(f"{MANY} wait")
        self.assertLess(page.locator(".list tbody tr").count(), 80)
        page.locator(".list").evaluate("list => { list.scrollTop = list.scrollHeight }")
        page.get_by_text(re.compile(rf"\b{MANY - 1}\b")).first.wait_for()
        print(f"first paint after {painted:.0f} ms ", end="", flush=True)
        self.assert_sound(page)


class TicketTest(PageTest):
    arguments = ()

    def address(self):
        raise NotImplementedError

    @classmethod
    def give_tokens(cls):
        pass

    def test_drover_ui_shows_the_page_without_a_token_and_to_nobody_else(self):
        address = browser.forwarded(self, self.daemon, uid=drover.NOBODY)
        self.assertRegex(address, r"^http://127\.0\.0\.1:\d+/ui/#ticket=ticket\.[0-9a-f]{64}$")
        own = self.daemon.submit("sleep", 600, gpus=1, uid=drover.NOBODY)
        page = self.browser.session()
        self.addCleanup(page.close)
        page.goto(address)
        page.heading("7 of 8 GPUs free")
        self.assertNotIn("ticket", page.url)
        page.goto(address.split("#")[0] + "tasks")
        page.get_by_text(own).wait_for()
        self.assert_sound(page)
        other = self.browser.session()
        self.addCleanup(other.close)
        other.goto(address)  # the ticket is used up
        other.get_by_label("Your token").wait_for()


if __name__ == "__main__":
    unittest.main()
