"""Packs a build for a GPU machine, checks and measures it there, prints benchmark rows (see tools/gpu_bench)."""
import argparse
import datetime
import json
import lzma
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAMS = ["millrace", "test_tensor", "test_splat", "test_loss", "test_strategy", "test_appearance", "test_backends_cuda", "test_train_cuda",
            "test_backends_vulkan", "test_train_vulkan"]
# These come with the machine.
SYSTEM_LIBRARIES = re.compile(r"/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so")
CAPTURES = ["alexander53", "can71", "king23"]
MODEL = "alexander53/model_3000.ply"
LEFT_OUT = ["masks", "model_*.ply"]  # of a capture
MOST_BYTES = 64 << 20
DEVICES = ["cuda:0", "vulkan:0"]
LAYERS = ["tensor", "splat", "loss", "strategy", "appearance"]
SEEDS = (1, 2, 3)
QUALITY = ["-i", "7000", "--strategy", "mcmc", "--max-cap", "300000"]
SPEED = ["-i", "7000", "--strategy", "mcmc", "--max-cap", "170000", "--seed", "1"]
DETERMINISM = ["-r", "2", "-i", "800", "--strategy", "mcmc", "--max-cap", "300000"]
RANDOM_CAPACITY = ["--test-capacity-random", "0.1"]
STEADY, STEADY_RUNS, BIG = [109451, 1000000, 3000000], 3, 48000000
SANITIZERS = {"memcheck": ["test_splat", "test_loss", "test_strategy", "test_tensor"], "racecheck": ["test_splat", "test_loss"]}
LIMIT_S = 150  # of one command


# --- pack ---
def pack_programs(build, pack):
    with tempfile.TemporaryDirectory() as folder:
        staged = pathlib.Path(folder)
        (staged / "lib").mkdir()
        for name in PROGRAMS:
            shutil.copy2(build / name, staged / name)
            listed = subprocess.run(["ldd", str(build / name)], check=True, capture_output=True, text=True).stdout
            for path in re.findall(r"=> (/\S+)", listed):
                if not SYSTEM_LIBRARIES.search(path):
                    shutil.copy2(path, staged / "lib" / pathlib.Path(path).name)
        subprocess.run(["strip", *(str(staged / name) for name in PROGRAMS)], check=True)
        with tarfile.open(pack / "programs.tar.xz", "w:xz") as archive:
            for entry in sorted(staged.iterdir()):
                archive.add(entry, entry.name)


def pack_twin(pack):
    subprocess.run([str(ROOT / "benchmarks/blend_twin/run"), "prepare"], cwd=ROOT, check=True)
    files = [*ROOT.glob("benchmarks/blend_twin/*"), *ROOT.glob("build/blend_twin/*.cu"), *ROOT.glob("src/*/*.h"),
             *ROOT.glob("src/kernels/*/*.h"), ROOT / "src/kernels/tile_cover.cpp"]
    for file in files:
        to = pack / "twin" / file.relative_to(ROOT)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, to)


def pack_command(arguments):
    pack = arguments.pack
    if pack.exists() and any(pack.iterdir()):
        sys.exit(f"gpu_bench: {pack} is not empty; name a new folder")
    for capture in arguments.captures:
        if not (arguments.data / capture).is_dir():
            sys.exit(f"gpu_bench: no capture {capture} in {arguments.data}")
    (pack / "data").mkdir(parents=True)
    pack_programs(arguments.build, pack)
    for capture in arguments.captures:
        shutil.copytree(arguments.data / capture, pack / "data" / capture, ignore=shutil.ignore_patterns(*LEFT_OUT))
    if (arguments.data / MODEL).is_file():
        (pack / "model.ply.xz").write_bytes(lzma.compress((arguments.data / MODEL).read_bytes()))
    if arguments.debs:
        shutil.copytree(arguments.debs, pack / "debs")
    if arguments.twin:
        pack_twin(pack)
    for name in ("gpu_bench", "gpu_bench.py"):
        shutil.copy2(ROOT / "tools" / name, pack / name)
    size = sum(file.stat().st_size for file in pack.rglob("*") if file.is_file())
    print(f"{pack}: {size / 2**20:.1f} MiB")
    if size > MOST_BYTES:
        sys.exit(f"gpu_bench: that is more than {MOST_BYTES >> 20} MiB; name fewer captures")


# --- run ---
def train_figures(report):
    return {"psnr": report["psnr"], "psnr_cc": report["psnr_cc"], "ssim": report["ssim"], "gaussians": report["gaussians"],
            "instances": report["instances"]["mean"], "ms": report["ms_per_step"]["last_1000_median"],
            "ms_median": report["ms_per_step"]["median"], "steps_per_second": report["steps_per_second"],
            "dry": report["device_dry_fraction"], "waits": report["waits"]["steady_per_step"], "replays": report["replays"],
            "state": report["state_sha256"], "device": report["device"]["name"], "commit": report["commit"],
            "peak_device_bytes": report["peak_bytes"]["device"]}


def steady_figures(bench):
    kept = ("gaussians", "visible", "waits_per_step", "device_busy_percent", "peak_device_bytes", "floor_ms", "kernels",
            "stages", "copy_bytes_per_second", "processed_share")
    figures = {name: bench[name] for name in kept}
    return {**figures, "ms": bench["ms_per_step"]["median"], "instances": bench["instances"]["mean"],
            "waits": bench["waits_per_step"]}


class Machine:
    """Runs a pack's programs and keeps what they say."""

    def __init__(self, pack, out):
        self.pack, self.out = pack.resolve(), out.resolve()
        self.out.mkdir(parents=True, exist_ok=True)
        self.json = self.out / "gpu_bench.json"
        self.rows = json.loads(self.json.read_text(encoding="utf-8"))["rows"] if self.json.is_file() else []
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="gpu_bench"))
        with tarfile.open(self.pack / "programs.tar.xz") as archive:
            archive.extractall(self.work / "bin")
        for deb in sorted((self.pack / "debs").glob("*.deb")):
            subprocess.run(["dpkg", "-x", str(deb), str(self.work / "root")], check=True)
        if (self.pack / "model.ply.xz").is_file():
            (self.work / "model.ply").write_bytes(lzma.decompress((self.pack / "model.ply.xz").read_bytes()))
        libraries = [self.work / "bin/lib", *(path for path in self.work.glob("root/usr/lib/*") if path.is_dir())]
        self.environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, libraries))}
        if (layers := self.work / "root/usr/share/vulkan/explicit_layer.d").is_dir():
            self.environment["VK_LAYER_PATH"] = str(layers)  # tests of the Vulkan backend ask for validation

    def captures(self):
        return sorted(path.name for path in (self.pack / "data").iterdir())

    def call(self, stage, name, command, figures=None, limit=LIMIT_S, environment=None, cwd=None):
        """Adds a row; `figures()` reads what the command left."""
        begin = datetime.datetime.now()
        row = {"stage": stage, "name": name, "command": " ".join(map(str, command)), "date": begin.date().isoformat()}
        program = [str(self.work / "bin" / command[0]), *map(str, command[1:])] if command[0] in PROGRAMS else command
        log = self.out / f"{stage}_{re.sub(r'[^a-z0-9]+', '_', name)}.log"
        with open(log, "w", encoding="utf-8") as to:
            try:
                code = subprocess.run([str(part) for part in program], env={**self.environment, **(environment or {})}, cwd=cwd,
                                      stdin=subprocess.DEVNULL, stdout=to, stderr=to, timeout=limit, check=False).returncode
            except (subprocess.TimeoutExpired, OSError) as error:
                code = str(error)
        row["exit"], row["seconds"] = code, round((datetime.datetime.now() - begin).total_seconds(), 1)
        try:
            row["figures"] = figures() if figures and code == 0 else {}
        except (OSError, ValueError, KeyError) as error:
            row["exit"] = f"no figures: {error!r}"
        self.rows.append(row)
        self.json.write_text(json.dumps({"schema": 1, "rows": self.rows}, indent=1), encoding="utf-8")
        print(f"{'ok  ' if row['exit'] == 0 else 'FAIL'} {stage} {name} ({row['seconds']} s)", flush=True)

    def train(self, stage, name, capture, device, flags):
        folder = self.work / "out"
        shutil.rmtree(folder, ignore_errors=True)
        command = ["millrace", "train", self.pack / "data" / capture, "-o", folder, "--device", device, *flags]
        self.call(stage, name, command, lambda: train_figures(json.loads((folder / "report.json").read_text(encoding="utf-8"))))

    def bench(self, stage, n, device):
        folder = self.work / "steady"
        command = ["millrace", "bench", "--steady", n, "--init", self.work / "model.ply", "-s",
                   self.pack / "data/alexander53", "--device", device, "-o", folder, "--overwrite"]
        self.call(stage, f"{n} {device}", command,
                  lambda: steady_figures(json.loads((folder / "bench.json").read_text(encoding="utf-8"))), limit=300)

    def tests(self):
        for device in DEVICES:
            for layer in LAYERS:
                self.call("tests", f"{layer} {device}", [f"test_{layer}", "--gtest_brief=1"],
                          environment={"MILLRACE_TEST_DEVICE": device})
        for name in PROGRAMS[len(LAYERS) + 1 :]:
            self.call("tests", name, [name, "--gtest_brief=1"], environment={"MILLRACE_TEST_DEVICE": DEVICES["vulkan" in name]})

    def quality(self):
        for capture in self.captures():
            for seed in SEEDS:
                self.train("quality", f"{capture} {DEVICES[0]}", capture, DEVICES[0], [*QUALITY, "--seed", seed])

    def speed(self):
        for _ in SEEDS:
            for device in DEVICES:
                self.train("speed", f"cap 170000 {device}", "alexander53", device, SPEED)

    def determinism(self):
        for device in DEVICES:
            for flags in ([], [], RANDOM_CAPACITY):
                self.train("determinism", f"king23 {device}", "king23", device, [*DETERMINISM, *flags])

    def steady(self):
        for n in STEADY:
            for _ in range(STEADY_RUNS):
                for device in DEVICES:
                    self.bench("steady", n, device)

    def twin(self):
        folder = self.work / "twin"
        shutil.copytree(self.pack / "twin", folder)
        file = folder / "blend_twin.json"
        self.call("twin", "blend", [folder / "benchmarks/blend_twin/run"], environment={"OUT": str(folder)}, cwd=folder, figures=lambda: {
            "lines": [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("{")]})

    def sanitize(self):
        for tool, tests in SANITIZERS.items():
            for test in tests:
                self.call("sanitize", f"{tool} {test}", ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9",
                                                         self.work / "bin" / test, "--gtest_brief=1"], limit=400,
                          environment={"MILLRACE_TEST_DEVICE": DEVICES[0]})

    def big(self):
        self.bench("big", BIG, DEVICES[0])


STAGES = ("tests", "quality", "speed", "determinism", "steady", "twin", "sanitize", "big")


def run_command(arguments):
    stages = arguments.stages or STAGES
    if unknown := [stage for stage in stages if stage not in STAGES]:
        sys.exit(f"gpu_bench: unknown stage {', '.join(unknown)}; there are {', '.join(STAGES)}")
    machine = Machine(arguments.pack, arguments.out)
    machine.rows = [row for row in machine.rows if row["stage"] not in stages]
    for stage in stages:
        getattr(machine, stage)()
    shutil.rmtree(machine.work)
    failed = failures(machine.rows)
    print("".join(f"failed: {text}\n" for text in failed), end="")
    return 1 if failed else 0


# --- figures to rows ---
def grouped(rows):
    groups = {}
    for row in rows:
        groups.setdefault((row["stage"], row["name"]), []).append(row)
    return groups


def failures(rows):
    failed = [f"{row['stage']} {row['name']}: exit {row['exit']}" for row in rows if row["exit"] != 0]
    for (stage, name), group in grouped(rows).items():
        states = {row["figures"].get("state") for row in group if row["exit"] == 0}
        if stage == "determinism" and len(states) > 1:
            failed.append(f"{stage} {name}: {len(states)} different states of one seed")
    return failed


def median_and_spread(values, form, unit):
    middle = statistics.median(values)
    spread = f"{(max(values) - min(values)) / abs(middle):.1%}" if len(values) > 1 and middle else "one run"
    return f"{middle:{form}} {unit}", spread


def table(rows):
    """The rows of docs/benchmarks.md, as text."""
    named = [row["figures"] for row in rows if row.get("figures", {}).get("device")]
    machine, commit = (named[0]["device"], named[0]["commit"]) if named else ("unknown", "unknown")
    lines = []
    for (stage, name), group in grouped(rows).items():
        good = [row["figures"] for row in group if row["exit"] == 0]
        command = re.sub(r"\S*/", "", group[0]["command"]).replace(" --overwrite", "")
        waits = max((figures["waits"] for figures in good if "waits" in figures), default="none")
        if len(good) < len(group):
            median, spread = f"FAILED: exit {next(row['exit'] for row in group if row['exit'] != 0)}", "-"
        elif stage == "quality":
            median, spread = median_and_spread([figures["psnr"] for figures in good], ".2f", "dB")
        elif stage in ("speed", "steady", "big"):
            median, spread = median_and_spread([figures["ms"] for figures in good], ".3f", "ms")
            median += f" per step, {statistics.median(figures['instances'] for figures in good):,.0f} instances"
        elif stage == "determinism":
            states = {figures["state"] for figures in good}
            replays = max(figures["replays"] for figures in good)
            median, spread = f"{len(states)} state(s) in {len(good)} runs, {replays} replays", "none"
        elif stage == "twin":
            median, spread = "; ".join(json.dumps(line) for line in good[0]["lines"]), "-"
        else:
            median, spread = "passed", "-"
        lines.append(f"| {group[0]['date']} | {commit} | {machine} | {stage} {name}: `{command}` | {median} | {spread} | {waits} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(prog="gpu_bench")
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack")
    for name in ("build", "data", "pack"):
        packing.add_argument(name, type=pathlib.Path)
    packing.add_argument("captures", nargs="*", default=CAPTURES)
    packing.add_argument("--debs", type=pathlib.Path)
    packing.add_argument("--twin", action="store_true")
    running = commands.add_parser("run")
    for name in ("pack", "out"):
        running.add_argument(name, type=pathlib.Path)
    running.add_argument("stages", nargs="*")
    printing = commands.add_parser("table")
    printing.add_argument("json", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.command == "table":
        print(table(json.loads(arguments.json.read_text(encoding="utf-8"))["rows"]))
        return 0
    return pack_command(arguments) if arguments.command == "pack" else run_command(arguments)


if __name__ == "__main__":
    sys.exit(main())
