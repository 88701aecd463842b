"""What each feature is worth on a capture: one run without any, one with each (see tools/ablate)."""
import argparse
import json
import pathlib
import shlex
import struct
import subprocess
import sys
import zlib

import garden
import run_bars

# name, flags that switch it on, what the capture must have
FEATURES = [
    ("mip-filter", ["--mip-filter"], None),
    ("erank", ["--erank-reg", "0.001"], None),
    ("dc", ["--dc-reg", "0.001"], None),
    ("sh-rest", ["--sh-rest-reg", "0.001"], None),
    ("falling-scale", ["--scale-reg-power", "0.4"], None),
    ("masks", ["--mask-mode", "ignore"], "masks"),
    ("structure", ["--thin-structure-weight", "0.5"], None),
    ("edges", ["--gradient-loss-weight", "1.8"], None),
    ("random-background", ["--bg-mode", "random"], None),
    ("mrnf", ["--strategy", "mrnf"], None),
    ("ppisp", ["--exposure-correction", "ppisp"], None),
    ("grid", ["--exposure-correction", "grid"], None),
    ("combined", ["--exposure-correction", "combined"], None),
]
MASK_FOLDERS = ("masks", "mask", "segmentation", "dynamic_masks")
SHEET_STEP, SHEET_GAP = 2, 6  # every so many pixels of the runs' sheets are kept; px between them
COLUMNS = [("PSNR", "psnr", "{:.2f}"), ("cc-PSNR", "psnr_cc", "{:.2f}"), ("SSIM", "ssim", "{:.4f}"), ("N", "gaussians", "{}"),
           ("ms/step", "ms_per_step", "{:.2f}"), ("waits/step", "waits", "{:g}")]


class Fault(Exception):
    """What the user has to change."""


def help_of(millrace):
    done = subprocess.run([millrace, "train", "--help"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def is_known(help_text, flags):
    """Whether the build has the flag, and names the value where it is one of several words."""
    if flags[0] not in help_text:
        return False
    words = {"--strategy", "--exposure-correction", "--mask-mode", "--bg-mode"}
    lines = help_text[help_text.index(flags[0]):].split("\n  -")[0]
    return flags[0] not in words or len(flags) < 2 or flags[1] in lines


def chosen_features(millrace, data, names, own):
    """[(name, flags)] in order: those asked for, or all that can be tried; then the user's own."""
    known = {name: (flags, needs) for name, flags, needs in FEATURES}
    unknown = [name for name in names or [] if name not in known]
    if unknown:
        raise Fault(f"unknown feature {', '.join(unknown)}; there are {', '.join(known)}, or --feature NAME=FLAGS")
    help_text, chosen = help_of(millrace), []
    for name in names if names is not None else known:
        flags, needs = known[name]
        built = is_known(help_text, flags)
        usable = needs != "masks" or any((data / folder).is_dir() for folder in MASK_FOLDERS)
        if built and usable:
            chosen.append((name, flags))
        elif names is not None:
            raise Fault(f"{name}: " + ("this build has no " + " ".join(flags) if not built else "the capture has no masks"))
    for text in own:
        name, mark, flags = text.partition("=")
        if not mark or not name or not flags:
            raise Fault(f"--feature {text}: expected NAME=FLAGS")
        chosen.append((name, shlex.split(flags)))
    if not chosen:
        raise Fault("no feature to try")
    twice = {name for name, _ in chosen if [n for n, _ in chosen].count(name) > 1} | ({"none"} & {n for n, _ in chosen})
    if twice:
        raise Fault(f"the name {', '.join(sorted(twice))} is taken")
    return chosen


def figures(report):
    """The columns of a run's report.json."""
    return {"psnr": report["psnr"], "psnr_cc": report.get("psnr_cc"), "ssim": report.get("ssim"),
            "gaussians": report["gaussians"], "ms_per_step": report["ms_per_step"]["median"],
            "waits": report["waits"]["steady_per_step"]}


def cell(layout, value, base):
    if value is None:
        return "-"
    text = layout.format(value)
    if base is None or not isinstance(value, float) or value == base:
        return text
    return f"{text} ({value - base:+.3g})"


def table(rows):
    """Markdown; differences to the first row in brackets."""
    lines = ["| | flags | " + " | ".join(title for title, _, _ in COLUMNS) + " |", "|---" * (2 + len(COLUMNS)) + "|"]
    base = rows[0]["figures"]
    for row in rows:
        if row["figures"] is None:
            lines.append(f"| {row['name']} | `{' '.join(row['flags'])}` | {row['fault']} |" + " |" * (len(COLUMNS) - 1))
            continue
        cells = [cell(layout, row["figures"][key], base[key] if base and row is not rows[0] else None)
                 for _, key, layout in COLUMNS]
        lines.append(f"| {row['name']} | `{' '.join(row['flags'])}` | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def png(rows):
    """An 8-bit RGB PNG of rows of bytes, all of one length."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", len(rows[0]) // 3, len(rows), 8, 2, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def stacked(sheets):
    """The sheets of the runs below each other, reduced; white lines between them."""
    reduced = []
    for rows in sheets:
        reduced.append([bytes(b for x in range(0, len(row) - 2, 3 * SHEET_STEP) for b in row[x:x + 3])
                        for row in rows[::SHEET_STEP]])
    width = max(len(rows[0]) for rows in reduced)
    out = []
    for rows in reduced:
        if out:
            out += [b"\xff" * width] * SHEET_GAP
        out += [row.ljust(width, b"\0") for row in rows]
    return out


def ablate(millrace, data, out, features, flags):
    """Runs everything; the rows of the table, the run without a feature first."""
    bars = run_bars.Bars(millrace, data.parent, out)
    rows = []
    for name, extra in [("none", [])] + features:
        report = bars.train(name, data.name, flags + extra)
        fault = report if isinstance(report, str) else None
        rows.append({"name": name, "flags": extra, "fault": fault, "figures": None if fault else figures(report)})
        print(f"{name}: " + (fault or ", ".join(f"{t} {cell(layout, rows[-1]['figures'][k], None)}" for t, k, layout in COLUMNS)),
              flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(prog="ablate", description=__doc__)
    parser.add_argument("millrace")
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--features", type=lambda text: [name for name in text.split(",") if name])
    parser.add_argument("--feature", action="append", default=[], metavar="NAME=FLAGS")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    arguments = sys.argv[1:]
    split = arguments.index("--") if "--" in arguments else len(arguments)
    options, flags = parser.parse_args(arguments[:split]), arguments[split + 1:]
    data = options.data.resolve()
    if not data.is_dir():
        print(f"ablate: no folder {options.data}", file=sys.stderr)
        return 3
    try:
        features = chosen_features(options.millrace, data, options.features, options.feature)
    except Fault as fault:
        print(f"ablate: {fault}", file=sys.stderr)
        return 2
    out = options.output
    out.mkdir(parents=True, exist_ok=True)
    rows = ablate(options.millrace, data, out, features, flags)
    (out / "ablation.json").write_text(json.dumps({"data": data.name, "flags": flags, "rows": rows}, indent=2) + "\n", encoding="utf-8")
    sheets = [(row["name"], out / row["name"] / "contact_sheet.png") for row in rows]
    sheets = [(name, path) for name, path in sheets if path.is_file()]
    order = ", ".join(name for name, _ in sheets)
    text = table(rows) + (f"\n`ablation.png` from above: {order}.\n" if sheets else "")
    (out / "ablation.md").write_text(text, encoding="utf-8")
    if sheets:
        (out / "ablation.png").write_bytes(png(stacked([garden.read_png(path) for _, path in sheets])))
    print("\n" + text)
    return 1 if any(row["fault"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
