#!/usr/bin/env python3
"""embed.py OUT.cpp FOLDER MODULE...: a C++ file that holds the compiled modules and lists their entry points.

FOLDER has MODULE.json (reflection) for each module, MODULE.spv, and where it was made MODULE.fatbin.
"""
import json
import pathlib
import sys


def blob(symbol, path):
    """An array of the bytes of `path`, in read-only data, aligned for every driver; a 0 byte follows."""
    return (f'asm(".pushsection .rodata\\n.balign 16\\n.global {symbol}\\n.hidden {symbol}\\n{symbol}:\\n"\n'
            f'    ".incbin \\"{path}\\"\\n.byte 0\\n.popsection\\n");\n'
            f'extern "C" const std::byte {symbol}[] __attribute__((visibility("hidden")));\n')


def main():
    out, folder, modules = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:]
    blobs, rows = [], []
    for module in modules:
        images = {}
        for kind in ("spv", "fatbin"):
            path = folder / f"{module}.{kind}"
            if path.exists():
                symbol = f"millrace_kernels_{module}_{kind}"
                blobs.append(blob(symbol, path))
                images[kind] = f"{{{symbol}, {path.stat().st_size}}}"
        reflection = json.loads((folder / f"{module}.json").read_text(encoding="utf-8"))
        for entry in reflection["entryPoints"]:
            size = entry["threadGroupSize"][0]
            rows.append(f'    {{"{entry["name"]}", {size}, {images.get("spv", "{}")}, {images.get("fatbin", "{}")}}},\n')
    rows.sort()
    out.write_text("// Made by tools/kernels/embed.py: the GPU kernels of this build.\n"
                   '#include "kernels/gpu_code.h"\n\n#include <cstddef>\n\n'
                   + "".join(blobs)
                   + "\nnamespace millrace {\nnamespace {\n\nconstexpr GpuEntry kEntries[] = {\n" + "".join(rows)
                   + "    {nullptr, 0, {}, {}}};\n\n}  // namespace\n\n"
                   + f"std::span<const GpuEntry> gpu_entries() {{ return std::span(kEntries).first({len(rows)}); }}\n\n"
                   + "}  // namespace millrace\n", encoding="utf-8")


if __name__ == "__main__":
    main()
