"""Draws some steps of a trace of `millrace train --trace` as an SVG picture.

  plot_trace.py TRACE.json OUT.svg [--from STEP] [--steps N]

Needs Python's standard library alone.
"""
import argparse
import colorsys
import json
import pathlib
import sys
from xml.sax.saxutils import escape

WIDTH, LEFT, TOP, ROW, GAP = 1120, 110, 34, 24, 12
TRACKS = ["recorded", "host waits", "uploads", "device", "accepted"]
NARROWEST_TEXT_PX = 6.3  # of one letter


def tracks_of(trace):
    """Events by the name of their track, sorted by time."""
    names, tracks = {}, {}
    for event in trace["traceEvents"]:
        if event["ph"] == "M" and event["name"] == "thread_name":
            names[event["tid"]] = event["args"]["name"]
    for event in trace["traceEvents"]:
        if event["ph"] != "M":
            tracks.setdefault(names[event["tid"]], []).append(event)
    for events in tracks.values():
        events.sort(key=lambda e: e["ts"])
    return tracks


def colour_of(name, known):
    """A colour of its own for each name, far from its neighbours' on the wheel."""
    index = known.setdefault(name, len(known))
    red, green, blue = colorsys.hls_to_rgb((0.58 + 0.381966 * index) % 1, 0.72, 0.55)
    return f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"


def drawn(tracks, begin, end):
    scale = (WIDTH - LEFT - 10) / (end - begin)
    rows = [t for t in TRACKS + sorted(t for t in tracks if t.startswith("loader"))
            if any(e["ts"] < end and e["ts"] + e.get("dur", 0) > begin for e in tracks.get(t, []))]
    height = TOP + len(rows) * (ROW + GAP) + 84
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
           'font-family="sans-serif" font-size="11">', f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>']
    bottom = TOP + len(rows) * (ROW + GAP)
    unit = next(u for u in (50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 10**6, 10**7)
                if (end - begin) / u <= 12)
    for tick in range(int((end - begin) / unit) + 1):
        x = LEFT + tick * unit * scale
        svg.append(f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{bottom}" stroke="#dddddd"/>'
                   f'<text x="{x:.1f}" y="{TOP - 13}" text-anchor="middle" fill="#555555">{tick * unit / 1000:g} ms</text>')
    known, shares = {}, {}
    for row, track in enumerate(rows):
        y = TOP + row * (ROW + GAP)
        svg.append(f'<text x="{LEFT - 8}" y="{y + ROW / 2 + 4}" text-anchor="end" font-size="12">{escape(track)}</text>')
        labels_end = 0
        for event in tracks[track]:
            first, last = max(event["ts"], begin), min(event["ts"] + event.get("dur", 0), end)
            if last < begin or first > end:
                continue
            x, width = LEFT + (first - begin) * scale, (last - first) * scale
            name = event["name"]
            label = f"{name} {event['args']['step']:g}" if "step" in event["args"] else name
            if "reason" in event["args"]:
                label = f"{name} ({event['args']['reason']})"
            if event["ph"] == "i":
                svg.append(f'<line x1="{x:.1f}" y1="{y}" x2="{x:.1f}" y2="{y + ROW}" stroke="#2a7f3f" stroke-width="2"/>')
                x = max(x + 4, labels_end)
                if x + len(label) * NARROWEST_TEXT_PX < WIDTH:
                    labels_end = x + (len(label) + 1) * NARROWEST_TEXT_PX
                    svg.append(f'<text x="{x:.1f}" y="{y + ROW / 2 + 4}">{escape(label)}</text>')
                continue
            shade = colour_of(name, known)
            if track == "device":
                shares[name] = shares.get(name, 0) + last - first
            svg.append(f'<rect x="{x:.2f}" y="{y}" width="{max(width, 0.6):.2f}" height="{ROW}" fill="{shade}">'
                       f'<title>{escape(label)}: {event["dur"] / 1000:.3f} ms</title></rect>')
            if width > len(label) * NARROWEST_TEXT_PX:
                svg.append(f'<text x="{x + width / 2:.1f}" y="{y + ROW / 2 + 4}" text-anchor="middle">{escape(label)}</text>')
    busy = sum(shares.values())
    top = sorted(shares, key=shares.get, reverse=True)[:8]
    svg.append(f'<text x="{LEFT}" y="{bottom + 22}" font-size="12">device busy {busy / (end - begin):.1%} of '
               f'{(end - begin) / 1000:.1f} ms; most of it in</text>')
    for i, name in enumerate(top):
        x, y = LEFT + (i % 4) * 245, bottom + 34 + (i // 4) * 20
        svg.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{colour_of(name, known)}"/>'
                   f'<text x="{x + 18}" y="{y + 10}">{escape(name)} {shares[name] / busy:.0%}</text>')
    svg.append("</svg>")
    return "\n".join(svg) + "\n"


def main():
    parser = argparse.ArgumentParser(description="Draws some steps of a millrace trace as SVG.")
    parser.add_argument("trace", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--from", dest="first", type=int, default=100, help="first step to show [100]")
    parser.add_argument("--steps", type=int, default=4, help="how many steps [4]")
    given = parser.parse_args()
    tracks = tracks_of(json.loads(given.trace.read_text(encoding="utf-8")))
    accepted = {e["args"]["step"]: e["ts"] for e in tracks.get("accepted", []) if e["name"] == "step"}
    if given.first not in accepted or given.first + given.steps not in accepted:
        print(f"plot_trace: the trace does not hold steps {given.first} to {given.first + given.steps}", file=sys.stderr)
        return 2
    picture = drawn(tracks, accepted[given.first], accepted[given.first + given.steps])
    given.out.write_text(picture, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
