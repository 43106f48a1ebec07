"""Devices of other vendors are for those whom an administrator names, and GPUs are nobody's device."""

import json
import pathlib
import tempfile

from attack import attack
import drover

DEVICES = {
    "disk": {"deviceNodes": [{"path": "/dev/stolen", "type": "b", "major": 7, "minor": 0, "permissions": "rw"}]},
    "card": {"env": ["CARD=1"], "deviceNodes": [{"path": "/dev/card", "hostPath": "/dev/full"}]},
    "other:1": {"env": ["CARD=2"]},
}


class WithDevices(attack.AttackTest):
    rules = ()

    @classmethod
    def setUpClass(cls):
        attack.people()
        cls.folder = attack.make_folder(tempfile.mkdtemp(prefix="drover-cdi-"))
        cls.addClassCleanup(drover.shutil.rmtree, cls.folder)
        for kind in ("vendor.com/net", "open.com/net", "vendor.com/network"):
            cls.install(kind, DEVICES)
        cls.arguments = (*cls.arguments, "--cdi-folder", cls.folder, *(word for rule in cls.rules for word in ("--allow-device", rule)))
        super().setUpClass()

    @classmethod
    def install(cls, kind, devices):
        (cls.folder / f"{kind.replace('/', '-')}.json").write_text(json.dumps({
            "cdiVersion": "0.6.0", "kind": kind, "containerEdits": {},
            "devices": [{"name": name, "containerEdits": edits} for name, edits in devices.items()]}))

    def card_of(self, caller, *names, **fields):
        _, output, errors = self.attempt(caller, ["/probe", "env", "CARD"], image=self.image("card"), devices=list(names), **fields)
        return output.strip() or errors

    def assert_not_for(self, caller, *names, words=("is not for the user", "--allow-device"), **fields):
        with self.assertRaises(drover.ApiError) as refused:
            self.submit(caller, ["/probe", "env", "CARD"], image=self.image("card"), devices=list(names), **fields)
        self.assertEqual(refused.exception.status, 403, refused.exception)
        told = refused.exception.message + " " + refused.exception.error.get("hint", "")
        for word in words:
            self.assertIn(word, told)


class NoRulesTest(WithDevices):
    """An administrator has installed devices, and said no more."""

    def test_a_user_takes_what_is_installed(self):
        self.assert_not_for(self.mallory, "vendor.com/net=disk", words=("vendor.com/net=disk", "'mallory'", "drover serve --allow-device"))
        self.assert_not_for(self.victim, "open.com/net=card")

    def test_root_has_them(self):
        self.assertEqual(self.card_of(None, "vendor.com/net=card"), "1")


class RulesTest(WithDevices):
    """An administrator has said who may have which."""

    rules = ("mallory:vendor.com/net=card", "@victim:vendor.com/net=other:1", "open.com/net")

    def test_nobody_has_what_no_rule_names(self):
        self.assert_not_for(self.mallory, "vendor.com/net=disk")
        self.assert_not_for(self.victim, "vendor.com/net=card")

    def test_who_is_named_has_it(self):
        self.assertEqual(self.card_of(self.mallory, "vendor.com/net=card"), "1")
        self.assertEqual(self.card_of(self.victim, "vendor.com/net=other:1"), "2", "as a member of the group")
        self.assertEqual(self.card_of(self.victim, "open.com/net=card"), "1", "everybody may")
        self.assertEqual(self.card_of(None, "vendor.com/network=card"), "1", "root has them all")

    def test_one_forbidden_device_among_others(self):
        self.assert_not_for(self.mallory, "vendor.com/net=card", "vendor.com/net=disk")
        self.assert_not_for(self.mallory, "open.com/net=card", "vendor.com/net=other:1")

    def test_a_kind_that_begins_alike(self):
        self.assert_not_for(self.mallory, "vendor.com/network=card")

    def test_names_with_tricks(self):
        for name in ("vendor.com/net=*", "vendor.com/net=all", "vendor.com/net=card,vendor.com/net=disk", "VENDOR.com/net=disk",
                     "vendor.com/net=disk\n", "vendor.com/net=card\u0000", "vendor.com/net=../net=disk", "vendor.com/net =card",
                     "vendor.com/net=card=disk", "mallory:vendor.com/net=disk"):
            with self.subTest(name=name), self.assertRaises(drover.ApiError) as refused:
                self.submit(self.mallory, ["/probe", "env", "CARD"], image=self.image("card"), devices=[name])
            self.assertIn(refused.exception.status, (400, 403, 422), refused.exception)

    def test_as_somebody_else(self):
        for user in ("victim", "root"):
            with self.assertRaises(drover.ApiError):
                self.submit(self.mallory, ["/probe", "env", "CARD"], image=self.image("card"), devices=["vendor.com/net=other:1"],
                            user=user)
        self.assertEqual(self.card_of(None, "vendor.com/net=disk", user="mallory"), "(unset)", "root gives it to whom he likes")

    def test_as_a_member_of_a_gang(self):
        self.assert_not_for(self.mallory, "vendor.com/net=disk", gang={"members": [{"cpus": 0.1}, {"cpus": 0.1}]})

    def test_a_rule_that_is_taken_back_counts_at_the_next_start(self):
        """A task that waits was accepted by a rule of before."""
        holder = self.submit(None, ["/probe", "sleep", 1000], image=self.image("holder"), gpus=8)
        self.daemon.wait_until_running(holder)
        waiting = self.submit(self.mallory, ["/probe", "env", "CARD"], image=self.image("card"), devices=["vendor.com/net=card"], gpus=1)
        arguments = self.daemon.arguments
        self.daemon.stop()
        self.daemon.arguments = [word.replace("mallory:", "victim:") if isinstance(word, str) else word for word in arguments]
        try:
            self.daemon.start()
            self.daemon.stop_task(holder, force=True)
            self.assert_refused(self.daemon.wait_until_final(waiting), "is not for the user 'mallory'")
        finally:
            self.daemon.stop()
            self.daemon.arguments = arguments
            self.daemon.start()


class MistakesTest(attack.AttackTest):
    """What is no rule is refused at the start: one that is misspelt must not be taken for none."""

    def test_mistakes(self):
        for rule in ("*", "vendor.com", "nobody-of-this-name:vendor.com/net", "@:vendor.com/net", "mallory,:vendor.com/net"):
            with self.subTest(rule=rule):
                ran = drover.run([drover.BINARY, "serve", "--state", self.ground / "other", "--socket", self.ground / "socket",
                                  "--simulate", "k40m", "--allow-device", rule])
                self.assert_one_sentence(ran, "allows no device", "[USER,@GROUP,...:]KIND[=NAME]")


class RenderNodeTest(attack.AttackTest):
    def test_a_node_to_draw_on_an_nvidia_card_is_a_gpu(self):
        """Whoever may draw on a card may compute on it."""
        nodes = [path for path in pathlib.Path("/sys/class/drm").glob("renderD*")
                 if (path / "device/vendor").read_text().startswith("0x10de")]
        if not nodes:
            self.skipTest("this machine has no card of NVIDIA's with a render node")
        folder = attack.make_folder(self.ground / "cdi")
        (folder / "draw.json").write_text(json.dumps({
            "cdiVersion": "0.6.0", "kind": "vendor.com/draw", "containerEdits": {},
            "devices": [{"name": "0", "containerEdits": {"deviceNodes": [{"path": f"/dev/dri/{nodes[0].name}"}]}}]}))
        daemon = drover.Daemon(arguments=("--cdi-folder", folder))
        self.addCleanup(daemon.close)
        daemon.start()
        with self.assertRaises(drover.ApiError) as refused:
            daemon.submit("devices", devices=["vendor.com/draw=0"])
        self.assertIn("brings a GPU along", refused.exception.message)
