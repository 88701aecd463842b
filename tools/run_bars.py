"""The bars on real captures: one row each of quality, speed, determinism and host waits (see tools/run_bars)."""
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys

import garden

KING23_SPEED = ["--strategy", "mcmc", "--sh-degree-interval", "1"]

QUALITY_SEEDS = (1, 2, 42)
# name, capture, flags, PSNR in dB that the held-out views must reach in the median of the seeds
QUALITY = [
    ("king23", "king23", ["-r", "4", "-i", "2000", "--test-images", "DSC_5294.jpg"], 18.3),
    ("lego400", "lego400", ["-i", "3000", "--init-num-pts", "20000", "--bg-color", "#ffffff"], 26.0),
    ("can71", "can71", ["-r", "2", "-i", "3000"], 23.5),
]
# -r, steps of one run, the cap on Gaussians, steps per second to reach
SPEED = [(4, 2000, 1443, 150.0), (2, 1000, 1443, 32.0), (1, 300, 1443, 7.0), (4, 6000, 6700, 55.0)]
SPEED_RUNS = 3
DETERMINISM_FLAGS = ["-r", "4", "-i", "200"]
EVERY_SET_STEPS = 50
# Every kind of transaction within 200 steps; forced capacities at steps of each kind.
REPLAY = ["-r", "8", "-i", "200", "--refine-start", "20", "--refine-every", "20", "--sh-degree-interval", "50",
          "--morton-interval", "40"]
REPLAY_STEPS = (0, 3, 50, 51, 60)
REPLAY_SEEDS = int(os.environ.get("REPLAY_SEEDS", "100"))
INSTANCE_BYTES = 60  # of device memory, for one tile instance while training
# Slopes of the device's peak storage between two runs: per Gaussian, and per pixel without the photographs.
MEMORY_GAUSSIANS, BYTES_PER_GAUSSIAN = (100000, 300000), 1600
BYTES_PER_PIXEL = 250
GARDEN_ERROR = 16  # of 255
# The device must not run dry, and the report must name what held a run up.
DRY_FRACTION, QUEUED_STEPS = 0.02, 2
SLOW_DECODE = ["-r", "4", "-i", "60", "--test-decode-delay-ms", "300", "--image-cache-bytes", "2M"]


@contextlib.contextmanager
def busy_cores():
    """Another program on every core for as long as the block runs."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


class Bars:
    def __init__(self, millrace, data, out):
        self.millrace, self.data, self.out = millrace, data, out
        self.rows = []  # name, what was found, what was asked, whether it held

    def row(self, name, found, asked, held):
        self.rows.append((name, found, asked, held))
        print(f"{'pass' if held else 'FAIL'}  {name}: {found} (asked: {asked})", flush=True)

    def train(self, name, capture, flags):
        """The report of a run, or a string that says why there is none."""
        folder = self.out / name
        folder.mkdir(parents=True, exist_ok=True)
        command = [self.millrace, "train", str(self.data / capture), "-o", str(folder), "--overwrite", *flags]
        with open(self.out / f"{name}.log", "w", encoding="utf-8") as log:
            log.write(" ".join(command) + "\n")
            log.flush()
            code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False).returncode
        if code != 0:
            return f"exit {code}, see {self.out / name}.log"
        try:
            return json.loads((folder / "report.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            return f"no report.json: {error}"

    def quality(self):
        """PSNR on the held-out views: the median of three seeds."""
        for name, capture, flags, bar in QUALITY:
            if not (self.data / capture).is_dir():
                continue
            asked = f">= {bar} dB"
            runs = [self.train(f"quality-{name}-{seed}", capture, flags + ["--seed", str(seed)])
                    for seed in QUALITY_SEEDS]
            fault = next((r if isinstance(r, str) else "nothing held out" for r in runs
                          if isinstance(r, str) or r["psnr"] is None), None)
            if fault:
                self.row(f"quality {name}", fault, asked, False)
                continue
            psnr = statistics.median(r["psnr"] for r in runs)
            each = ", ".join(f"{r['psnr']:.2f}" for r in runs)
            found = f"{psnr:.2f} dB (seeds: {each}), {runs[0]['gaussians']} Gaussians, {runs[0]['seconds']:.0f} s each"
            self.row(f"quality {name}", found, asked, psnr >= bar)

    def speed(self):
        """Rounds over all sizes, so that a slow minute of the machine falls on all alike; medians."""
        if not (self.data / "king23").is_dir():
            return
        rates, faults = {bar: [] for bar in SPEED}, {}
        for i in range(SPEED_RUNS):
            for bar in SPEED:
                factor, steps, cap, _ = bar
                flags = ["-r", str(factor), "-i", str(steps), "--max-cap", str(cap), *KING23_SPEED]
                report = self.train(f"speed-r{factor}-{cap}-{i}", "king23", flags)
                if isinstance(report, str):
                    faults[bar] = report
                else:
                    rates[bar].append(report["steps_per_second"])
        for bar in SPEED:
            factor, _, cap, least = bar
            name, asked = f"speed king23 -r {factor} --max-cap {cap}", f">= {least} steps/s"
            if bar in faults:
                self.row(name, faults[bar], asked, False)
                continue
            median = statistics.median(rates[bar])
            spread = (max(rates[bar]) - min(rates[bar])) / median
            self.row(name, f"{median:.2f} steps/s, spread {spread:.0%}", asked, median >= least)

    def determinism(self):
        if not (self.data / "king23").is_dir():
            return
        runs = [("again", []), ("1-thread", ["--threads", "1"]), ("2-threads", ["--threads", "2"])]
        first = self.train("determinism-first", "king23", DETERMINISM_FLAGS)
        for name, flags in runs:
            other = self.train(f"determinism-{name}", "king23", DETERMINISM_FLAGS + flags)
            fault = next((r for r in (first, other) if isinstance(r, str)), None)
            if fault:
                self.row(f"determinism {name}", fault, "equal state_sha256", False)
                continue
            hashes = [r["state_sha256"][:12] for r in (first, other)]
            held = first["state_sha256"] == other["state_sha256"]
            self.row(f"determinism {name}", " and ".join(hashes), "equal state_sha256", held)

    def replay(self):
        """Refused steps are replayed to the same bits, and so are frames that are drawn in bands."""
        if not (self.data / "king23").is_dir():
            return
        edits = self.out / "replay-edits.jsonl"
        edits.parent.mkdir(parents=True, exist_ok=True)
        edits.write_text('{"step": 45, "bg_color": "#204060", "eval": true}\n{"step": 90, "save": true}\n'
                         '{"step": 120, "max_cap": 3000}\n', encoding="utf-8")
        stream = REPLAY + ["--commands", str(edits)]
        undisturbed = self.train("replay-undisturbed", "king23", REPLAY)
        forced = self.train("replay-forced", "king23",
                            REPLAY + [f for s in REPLAY_STEPS for f in ("--test-capacity", f"1@{s}")])
        self.same_state("replay forced", undisturbed, forced, f"replays = {len(REPLAY_STEPS)}",
                        lambda run: run["replays"] == len(REPLAY_STEPS), lambda run: f"{run['replays']} replays")
        budget = int(undisturbed["instances"]["max"] * INSTANCE_BYTES / 10) if isinstance(undisturbed, dict) else 1
        bands = self.train("replay-bands", "king23", REPLAY + [f"--instance-budget={budget}"])
        self.same_state("replay bands", undisturbed, bands, "0 waits at a tenth of the need",
                        lambda run: run["waits"]["steady_per_step"] == 0 and run["instances"]["bands"] >= 10,
                        lambda run: f"{run['instances']['bands']} bands")
        replays, different = 0, []
        for seed in range(REPLAY_SEEDS):
            flags = stream + ["--seed", str(seed)]
            calm = self.train("replay-seed-calm", "king23", flags)
            cut = self.train("replay-seed-cut", "king23", flags + ["--test-capacity-random", "0.1"])
            if isinstance(calm, str) or isinstance(cut, str) or calm["state_sha256"] != cut["state_sha256"]:
                different.append(str(seed))
            else:
                replays += cut["replays"]
        found = f"{replays} replays" + (f"; different: seeds {', '.join(different)}" if different else "")
        self.row("replay random", found, f"equal hashes for {REPLAY_SEEDS} seeds",
                 not different and replays > REPLAY_SEEDS)

    def same_state(self, name, first, second, asked, holds, found):
        """A row on two runs with one state hash and something more that `holds` for the second."""
        fault = next((r for r in (first, second) if isinstance(r, str)), None)
        if fault:
            self.row(name, fault, asked, False)
            return
        equal = first["state_sha256"] == second["state_sha256"]
        self.row(name, f"{'equal' if equal else 'different'} hashes, {found(second)}", f"equal hashes, {asked}",
                 equal and holds(second))

    def memory(self):
        if not (self.data / "king23").is_dir():
            return
        runs = [self.train(f"memory-{n}", "king23", ["-r", "8", "--random", "--init-num-pts", str(n), "--max-cap", str(n),
                                                     "-i", "60"]) for n in MEMORY_GAUSSIANS]
        sizes = [self.train(f"memory-r{r}", "king23", ["-r", str(r), "--max-cap", "1443", "-i", "60"]) for r in (2, 1)]
        fault = next((r for r in runs + sizes if isinstance(r, str)), None)
        if fault:
            self.row("memory", fault, "two slopes", False)
            return
        rise = runs[1]["peak_bytes"]["device"] - runs[0]["peak_bytes"]["device"]
        per_row = rise / (runs[1]["gaussians"] - runs[0]["gaussians"])
        self.row("memory per Gaussian", f"{per_row:.0f} B", f"<= {BYTES_PER_GAUSSIAN} B", per_row <= BYTES_PER_GAUSSIAN)
        pixels = [500 * 330, 1000 * 660]
        used = [r["peak_bytes"]["device"] for r in sizes]
        per_pixel = (used[1] - used[0]) / (pixels[1] - pixels[0])
        found = f"{per_pixel:.0f} B, all 22 photographs included"
        self.row("memory per pixel", found, f"<= {BYTES_PER_PIXEL} B", per_pixel <= BYTES_PER_PIXEL)

    def garden(self):
        if not (self.data / "test_garden").is_dir():
            return
        error, n = garden.compare(self.data, self.millrace, self.out / "garden")
        found = f"median colour error {error:.1f} of 255 over {n} front points"
        self.row("test_garden", found, f"<= {GARDEN_ERROR}", error <= GARDEN_ERROR and n > 1000)

    def slow(self):
        """The queue stays full, a loaded machine makes nobody wait, and a slow loader is found out."""
        if not (self.data / "king23").is_dir():
            return
        report = self.train("slow-queue", "king23", ["-r", "4", "-i", "500"])
        if isinstance(report, str):
            self.row("slow queue", report, "a full queue", False)
        else:
            dry, queued = report["device_dry_fraction"], report["mean_queued_steps"]
            self.row("slow queue", f"dry {dry:.2%}, {queued:.2f} steps queued",
                     f"dry <= {DRY_FRACTION:.0%}, >= {QUEUED_STEPS} steps",
                     dry <= DRY_FRACTION and queued >= QUEUED_STEPS)
        with busy_cores():
            report = self.train("slow-loaded", "king23", ["-r", "4", "-i", "200"])
        found = report if isinstance(report, str) else f"{report['waits']['steady_per_step']} waits per step"
        held = not isinstance(report, str) and report["waits"]["steady_per_step"] == 0
        self.row("slow loaded cores", found, "0 waits per step", held)
        report = self.train("slow-decode", "king23", SLOW_DECODE)
        found = report if isinstance(report, str) else report["why_slow"]
        self.row("slow decode", found, "decode-bound", found.startswith("decode-bound"))

    def waits(self):
        """Every capture loads, trains some steps, and never waits in a steady one."""
        for folder in sorted(p for p in self.data.iterdir() if p.is_dir()):
            is_capture = (folder / "sparse").is_dir() or any(folder.glob("transforms*.json"))
            if not is_capture:
                continue
            report = self.train(f"waits-{folder.name}", folder.name, ["--max-width", "320", "-i", str(EVERY_SET_STEPS)])
            if isinstance(report, str):
                self.row(f"waits {folder.name}", report, "0 per step", False)
                continue
            per_step = report["waits"]["steady_per_step"]
            sites = ", ".join(f"{s['site']} ({s['reason']}) x{s['count']}" for s in report["waits"]["by_site"])
            held = per_step == 0 and report["steps"] == EVERY_SET_STEPS
            found = f"{per_step} per step, {report['steps']} steps" + ("" if held else f": {sites}")
            self.row(f"waits {folder.name}", found, f"0 per step, {EVERY_SET_STEPS} steps", held)


def main():
    if len(sys.argv) < 4:
        sys.exit("usage: run_bars.py MILLRACE DATA_DIR OUT_DIR [quality|speed|determinism|replay|memory|garden|slow|waits ...]")
    kinds = ("quality", "speed", "determinism", "replay", "memory", "garden", "slow", "waits")
    chosen = sys.argv[4:] or kinds
    unknown = [k for k in chosen if k not in kinds]
    if unknown:
        print(f"run_bars: unknown bar {', '.join(unknown)}; there are {', '.join(kinds)}", file=sys.stderr)
        return 2
    bars = Bars(sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
    for kind in chosen:
        getattr(bars, kind)()
    print("\n| bar | found | asked | |\n|---|---|---|---|")
    for name, found, asked, held in bars.rows:
        print(f"| {name} | {found} | {asked} | {'pass' if held else 'FAIL'} |")
    failed = sum(not held for _, _, _, held in bars.rows)
    print(f"\n{len(bars.rows) - failed} passed, {failed} failed")
    return 1 if failed or not bars.rows else 0


if __name__ == "__main__":
    sys.exit(main())
