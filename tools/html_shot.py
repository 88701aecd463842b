#!/usr/bin/env python3
"""Shows a page of `millrace export --to html` in a headless browser and compares it with our own render.

    tools/html_shot.py PAGE --view K --shot OUT.png [--against RENDER.png --psnr 30]
Needs chromium-headless-shell or chromium (tools/apt-packages-ci.txt). WebGL runs in software. Exit 1: not near enough.
"""
import argparse
import json
import math
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")


def read_png(path):
    """(width, height, rows of RGB bytes) of an 8-bit RGB or RGBA PNG that is not interlaced."""
    data = path.read_bytes()
    at, packed, head = 8, b"", None
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        head = struct.unpack(">IIBBBBB", body) if kind == b"IHDR" else head
        packed += body if kind == b"IDAT" else b""
        at += 12 + size
    width, height, depth, color, _, _, interlaced = head
    if depth != 8 or color not in (2, 6) or interlaced:
        raise SystemExit(f"{path}: only plain 8-bit RGB and RGBA are read")
    channels = 3 if color == 2 else 4
    raw, stride = zlib.decompress(packed), width * channels
    rows, above = [], bytearray(stride)
    for y in range(height):
        kind = raw[y * (stride + 1)]
        row = bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for x in range(stride):
            left = row[x - channels] if x >= channels else 0
            corner = above[x - channels] if x >= channels else 0
            if kind == 1:
                add = left
            elif kind == 2:
                add = above[x]
            elif kind == 3:
                add = (left + above[x]) // 2
            elif kind == 4:
                guess = left + above[x] - corner
                near = (abs(guess - left), abs(guess - above[x]), abs(guess - corner))
                add = left if near[0] <= near[1] and near[0] <= near[2] else above[x] if near[1] <= near[2] else corner
            else:
                add = 0
            row[x] = (row[x] + add) & 255
        rows.append(row if channels == 3 else bytearray(b for i, b in enumerate(row) if i % 4 != 3))
        above = row
    return width, height, rows


def psnr(a, b):
    if a[:2] != b[:2]:
        raise SystemExit(f"sizes differ: {a[0]}x{a[1]} and {b[0]}x{b[1]}")
    squares = sum((x - y) ** 2 for row, other in zip(a[2], b[2]) for x, y in zip(row, other))
    mse = squares / (3 * a[0] * a[1] * 255 ** 2)
    return 100.0 if mse == 0 else min(100.0, -10 * math.log10(mse))


def camera_size(page, view):
    text = page.read_text(encoding="utf-8")
    scene = json.loads(re.search(r'<script id="scene" type="application/json">(.*?)</script>', text, re.S)[1])
    camera = scene["cameras"][view]
    return camera["width"], camera["height"]


def shoot(page, view, out):
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit("no browser; install chromium-headless-shell or chromium")
    width, height = camera_size(page, view)
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, "--no-sandbox", "--hide-scrollbars", "--force-device-scale-factor=1", "--use-gl=angle",
                   "--use-angle=swiftshader", "--enable-unsafe-swiftshader", f"--user-data-dir={profile}",
                   f"--window-size={width},{height}", "--virtual-time-budget=60000", f"--screenshot={out}",
                   f"{page.as_uri()}#view={view}"]
        if not browser.endswith("headless-shell"):
            command.insert(1, "--headless=new")
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0 or not out.is_file():
        raise SystemExit(f"{browser} failed:\n{done.stderr[-2000:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--view", type=int, default=0)
    parser.add_argument("--shot", type=pathlib.Path, required=True)
    parser.add_argument("--against", type=pathlib.Path)
    parser.add_argument("--psnr", type=float, default=30)
    options = parser.parse_args()
    shoot(options.page.resolve(), options.view, options.shot.resolve())
    print(f"screenshot: {options.shot}")
    if options.against is None:
        return 0
    found = psnr(read_png(options.shot), read_png(options.against))
    print(f"browser against our render: {found:.1f} dB (at least {options.psnr:g})")
    return 0 if found >= options.psnr else 1


if __name__ == "__main__":
    sys.exit(main())
