"""tools/gpu_bench.py turns figures into rows, tells failures, and refuses what it cannot pack or run."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import gpu_bench  # noqa: E402


def row(stage, name, code=0, **figures):
    return {"stage": stage, "name": name, "command": "millrace train /a/b/king23 -o /tmp/x --seed 1", "date": "2026-12-03",
            "exit": code, "seconds": 1.0, "figures": figures}


def trained(stage, name, **figures):
    return row(stage, name, **{"device": "GPU 9", "commit": "abc1234", "psnr": 20.0, "ms": 2.0, "instances": 1234567.0,
                               "waits": 0, "state": "s", "replays": 0, **figures})


class GpuBenchTest(unittest.TestCase):
    def test_quality_is_the_median_of_the_seeds_with_its_spread(self):
        rows = [trained("quality", "king23 cuda:0", psnr=psnr) for psnr in (20.0, 22.0, 21.0)]
        text = gpu_bench.table(rows)
        self.assertEqual(text, "| 2026-12-03 | abc1234 | GPU 9 | quality king23 cuda:0: `millrace train king23 -o x --seed 1` "
                               "| 21.00 dB | 9.5% | 0 |")

    def test_times_come_with_their_instances_and_a_single_run_says_so(self):
        text = gpu_bench.table([trained("speed", "cap 170000 cuda:0", ms=1.8125)])
        self.assertIn("| 1.812 ms per step, 1,234,567 instances | one run |", text)

    def test_each_group_has_a_row_and_a_failed_one_says_its_exit(self):
        rows = [row("tests", "loss cuda:0"), row("tests", "loss vulkan:0", code=1),
                trained("steady", "1000 cuda:0"), trained("steady", "1000 vulkan:0"), trained("steady", "1000 cuda:0")]
        lines = gpu_bench.table(rows).splitlines()
        self.assertEqual(len(lines), 4)
        self.assertIn("| passed |", lines[0])
        self.assertIn("FAILED: exit 1", lines[1])
        self.assertEqual(gpu_bench.failures(rows), ["tests loss vulkan:0: exit 1"])

    def test_two_states_of_one_seed_are_a_failure(self):
        same = [trained("determinism", "king23 cuda:0") for _ in range(3)]
        self.assertEqual(gpu_bench.failures(same), [])
        same[2]["figures"]["state"] = "t"
        self.assertEqual(len(gpu_bench.failures(same)), 1)
        self.assertIn("2 state(s) in 3 runs", gpu_bench.table(same))

    def test_waits_are_the_most_of_any_run(self):
        rows = [trained("speed", "a", waits=0), trained("speed", "a", waits=0.5)]
        self.assertTrue(gpu_bench.table(rows).endswith("| 0.5 |"))

    def test_the_command_prints_the_table_and_names_what_is_wrong(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "gpu_bench.json"
            file.write_text(json.dumps({"schema": 1, "rows": [trained("speed", "a")]}), encoding="utf-8")
            command = [str(ROOT / "tools/gpu_bench")]
            done = subprocess.run([*command, "table", str(file)], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("speed a", done.stdout)
            done = subprocess.run([*command, "run", folder, folder, "sped"], capture_output=True, text=True, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("unknown stage sped", done.stderr)
            done = subprocess.run([*command, "pack", folder, folder, folder + "/p", "king23"], capture_output=True, text=True, check=False)
            self.assertIn("no capture king23", done.stderr)


if __name__ == "__main__":
    unittest.main()
