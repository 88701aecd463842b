"""tools/ablate.py runs each feature once and tells what each is worth, by a stand-in trainer."""
import json
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import ablate  # noqa: E402
import garden  # noqa: E402

TRAINER = """#!/usr/bin/env python3
import json, pathlib, sys
sys.path.insert(0, {tools!r})
import ablate
if "--help" in sys.argv:
    print("  --mip-filter\\n  --erank-reg X\\n  --mask-mode NAME  none, ignore\\n  --strategy NAME  mcmc\\n  --bg-mode NAME  random")
    sys.exit(0)
if "--lambda-dssim" in sys.argv and "bad" in sys.argv: sys.exit(2)
out = pathlib.Path(sys.argv[sys.argv.index("-o") + 1])
mip, seed = "--mip-filter" in sys.argv, int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else 0
(out / "contact_sheet.png").write_bytes(ablate.png([bytes([200 if mip else 100] * 60)] * 10))
(out / "report.json").write_text(json.dumps({{
    "psnr": 20.0 + mip + seed, "psnr_cc": 21.0, "ssim": 0.5, "gaussians": 70, "ms_per_step": {{"median": 2.5, "p95": 3}},
    "waits": {{"steady_per_step": 0.0}}}}))
"""


class AblateTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "capture").mkdir()
        self.trainer = self.root / "millrace"
        self.trainer.write_text(TRAINER.format(tools=str(ROOT / "tools")), encoding="utf-8")
        self.trainer.chmod(self.trainer.stat().st_mode | stat.S_IXUSR)

    def run_ablate(self, *arguments):
        command = [sys.executable, str(ROOT / "tools" / "ablate.py"), str(self.trainer), str(self.root / "capture"), "-o",
                   str(self.root / "out"), *arguments]
        return subprocess.run(command, text=True, capture_output=True, check=False)

    def rows(self):
        return json.loads((self.root / "out/ablation.json").read_text(encoding="utf-8"))["rows"]

    def test_each_feature_runs_once_beside_the_plain_run(self):
        done = self.run_ablate("--features", "mip-filter,erank", "--", "--seed", "3")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([row["name"] for row in self.rows()], ["none", "mip-filter", "erank"])
        self.assertEqual([row["figures"]["psnr"] for row in self.rows()], [23.0, 24.0, 23.0])
        text = (self.root / "out/ablation.md").read_text(encoding="utf-8")
        self.assertIn("| mip-filter | `--mip-filter` | 24.00 (+1) | 21.00 | 0.5000 | 70 | 2.50 | 0 |", text)
        self.assertIn("from above: none, mip-filter, erank.", text)

    def test_without_names_all_that_the_build_and_the_capture_have_are_tried(self):
        self.run_ablate()
        self.assertEqual([row["name"] for row in self.rows()], ["none", "mip-filter", "erank", "random-background"])
        (self.root / "capture/masks").mkdir()
        self.run_ablate()
        self.assertIn("masks", [row["name"] for row in self.rows()])

    def test_the_sheet_stacks_the_runs(self):
        self.run_ablate("--features", "mip-filter")
        rows = garden.read_png(self.root / "out/ablation.png")
        self.assertEqual(len(rows), 5 + ablate.SHEET_GAP + 5)
        self.assertEqual((rows[0][0], rows[5][0], rows[-1][0]), (100, 255, 200))
        self.assertEqual(len(rows[0]), 30)

    def test_own_flags_are_a_feature(self):
        done = self.run_ablate("--features", "", "--feature", "sharp=--lambda-dssim 0.4")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.rows()[1]["flags"], ["--lambda-dssim", "0.4"])

    def test_a_run_that_fails_is_told_and_the_others_go_on(self):
        done = self.run_ablate("--features", "mip-filter", "--feature", "broken=--lambda-dssim bad")
        self.assertEqual(done.returncode, 1)
        self.assertIn("exit 2", self.rows()[2]["fault"])
        self.assertIn("| broken | `--lambda-dssim bad` | exit 2", (self.root / "out/ablation.md").read_text(encoding="utf-8"))
        self.assertEqual(self.rows()[1]["figures"]["psnr"], 21.0)

    def test_what_cannot_be_tried_is_refused_before_any_run(self):
        for arguments, words in ((("--features", "nonsense"), "unknown feature nonsense"),
                                 (("--features", "masks"), "the capture has no masks"),
                                 (("--features", "mrnf"), "this build has no --strategy mrnf"),
                                 (("--feature", "x"), "expected NAME=FLAGS"),
                                 (("--feature", "none=--mip-filter"), "the name none is taken"),
                                 (("--features", ""), "no feature to try")):
            done = self.run_ablate(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(words, done.stderr)
        self.assertFalse((self.root / "out").exists())


if __name__ == "__main__":
    unittest.main()
