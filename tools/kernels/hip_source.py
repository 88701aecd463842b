#!/usr/bin/env python3
"""hip_source.py IN.cu OUT.hip.cpp: CUDA source made by Slang without the parts of its prelude that are PTX."""
import pathlib
import re
import sys

# The surface functions, up to the arithmetic of the prelude.
SURFACES = re.compile(r"\n[^\n]*Support for doing format conversion when writing to a surface.*?(?=\n// -+ F16 -+)", re.S)
ASSEMBLY = re.compile(r'\basm\s*(?:volatile)?\s*\((?:"(?:[^"\\]|\\.)*"|[^"()]|\((?:"[^"]*"|[^()"])*\))*\)\s*;')


def main():
    text = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    text, n_surfaces = SURFACES.subn("", text)
    if n_surfaces != 1:
        sys.exit("hip_source.py: the prelude's surface functions are not where they were")
    text = text.replace("atomicCAS(float* address", "atomicCAS_of_float(float* address")  # HIP has its own
    pathlib.Path(sys.argv[2]).write_text('#include "hip_prelude.h"\n' + ASSEMBLY.sub(";", text), encoding="utf-8")


if __name__ == "__main__":
    main()
