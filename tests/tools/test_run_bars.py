"""tools/run_bars.py passes and fails rows by what a stand-in trainer reports."""
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

TRAINER = """#!/usr/bin/env python3
import json, os, pathlib, sys
if os.environ.get("FAKE_EXIT"): sys.exit(int(os.environ["FAKE_EXIT"]))
out = pathlib.Path(sys.argv[sys.argv.index("-o") + 1])
threads = sys.argv[sys.argv.index("--threads") + 1] if "--threads" in sys.argv else "2"
flag = lambda name, default: int(sys.argv[sys.argv.index(name) + 1]) if name in sys.argv else default
rows = flag("--init-num-pts", 7)
pixels = 1000 * 660 // flag("-r", 1) ** 2
disturbed = [f for f in sys.argv if f.startswith("--test-capacity") or f.startswith("--instance-budget")]
state = "changed" if disturbed and os.environ.get("FAKE_REPLAY") else threads if os.environ.get("FAKE_RACE") else "same"
(out / "report.json").write_text(json.dumps({
    "psnr": float(os.environ.get("FAKE_PSNR", "40")), "gaussians": rows, "seconds": 1.0,
    "steps_per_second": float(os.environ.get("FAKE_RATE", "200")),
    "peak_bytes": {"device": int(os.environ.get("FAKE_ROW_BYTES", "700")) * rows + 100 * pixels},
    "device_dry_fraction": float(os.environ.get("FAKE_DRY", "0.001")), "mean_queued_steps": 2.9,
    "why_slow": os.environ.get("FAKE_WHY", "decode-bound: of course") if "--test-decode-delay-ms" in sys.argv else "",
    "replays": int(os.environ.get("FAKE_REPLAYS", max(5, len(disturbed)))) if disturbed else 0,
    "instances": {"max": 1000, "bands": 11}, "state_sha256": state, "steps": int(sys.argv[sys.argv.index("-i") + 1]),
    "waits": {"steady_per_step": float(os.environ.get("FAKE_WAITS", "0")),
              "by_site": [{"site": "loss.item", "reason": "UserRead", "count": 3, "ns": 1}]}}))
"""


class RunBarsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("king23", "lego400", "can71"):
            (self.root / "data" / name / "sparse").mkdir(parents=True)
        self.trainer = self.root / "millrace"
        self.trainer.write_text(TRAINER, encoding="utf-8")
        self.trainer.chmod(self.trainer.stat().st_mode | stat.S_IXUSR)

    def run_bars(self, *kinds, **environment):
        command = [sys.executable, str(ROOT / "tools" / "run_bars.py"), str(self.trainer), str(self.root / "data"),
                   str(self.root / "out"), *kinds]
        return subprocess.run(command, env={"PATH": "/usr/bin:/bin", "REPLAY_SEEDS": "2", **environment}, text=True, capture_output=True,
                              check=False)

    def test_all_bars_pass_with_a_good_trainer(self):
        done = self.run_bars()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("21 passed, 0 failed", done.stdout)

    def test_a_low_psnr_fails_its_row(self):
        done = self.run_bars("quality", FAKE_PSNR="25")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAIL  quality lego400: 25.00 dB", done.stdout)
        self.assertIn("pass  quality king23", done.stdout)

    def test_a_replay_that_changes_the_state_fails(self):
        done = self.run_bars("replay", FAKE_REPLAY="1")
        self.assertEqual(done.returncode, 1)
        for name in ("forced", "bands"):
            self.assertIn(f"FAIL  replay {name}: different hashes", done.stdout)
        self.assertIn("FAIL  replay random: 0 replays; different: seeds 0, 1", done.stdout)

    def test_too_few_replays_fail(self):
        done = self.run_bars("replay", FAKE_REPLAYS="4")
        self.assertIn("FAIL  replay forced: equal hashes, 4 replays", done.stdout)

    def test_a_wait_fails_and_its_site_is_named(self):
        done = self.run_bars("waits", FAKE_WAITS="0.5")
        self.assertEqual(done.returncode, 1)
        self.assertIn("loss.item (UserRead) x3", done.stdout)

    def test_large_rows_fail_the_slope_and_not_the_pixels(self):
        done = self.run_bars("memory", FAKE_ROW_BYTES="1700")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAIL  memory per Gaussian: 1700 B", done.stdout)
        self.assertIn("pass  memory per pixel: 100 B", done.stdout)

    def test_a_dry_device_fails_its_row_alone(self):
        done = self.run_bars("slow", FAKE_DRY="0.03")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAIL  slow queue: dry 3.00%, 2.90 steps queued", done.stdout)
        self.assertIn("pass  slow decode", done.stdout)

    def test_a_slow_loader_that_is_not_named_fails(self):
        done = self.run_bars("slow", FAKE_WHY="device-bound: no idea")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAIL  slow decode: device-bound: no idea", done.stdout)

    def test_a_wait_on_a_loaded_machine_fails(self):
        done = self.run_bars("slow", FAKE_WAITS="0.01")
        self.assertIn("FAIL  slow loaded cores: 0.01 waits per step", done.stdout)

    def test_different_states_fail(self):
        done = self.run_bars("determinism", FAKE_RACE="1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAIL  determinism 1-thread", done.stdout)
        self.assertIn("pass  determinism again", done.stdout)

    def test_a_slow_trainer_fails_the_sizes_that_it_is_too_slow_for(self):
        done = self.run_bars("speed", FAKE_RATE="40")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAIL  speed king23 -r 4 --max-cap 1443: 40.00 steps/s", done.stdout)
        self.assertIn("FAIL  speed king23 -r 4 --max-cap 6700", done.stdout)
        self.assertIn("pass  speed king23 -r 2 --max-cap 1443", done.stdout)

    def test_a_trainer_that_ends_early_fails_every_row(self):
        done = self.run_bars("speed", FAKE_EXIT="3")
        self.assertEqual(done.returncode, 1)
        self.assertIn("0 passed, 4 failed", done.stdout)
        self.assertIn("exit 3", done.stdout)

    def test_an_unknown_bar_is_a_usage_error(self):
        self.assertEqual(self.run_bars("colour").returncode, 2)


if __name__ == "__main__":
    unittest.main()
