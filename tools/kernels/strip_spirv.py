#!/usr/bin/env python3
"""strip_spirv.py IN OUT: drops names, sources and lines from a SPIR-V module.

Validators of before 2024 refuse a module whose OpSource names Slang.
"""
import struct
import sys

from align_spirv import aligned

SOURCE_CONTINUED, SOURCE, SOURCE_EXTENSION, NAME, MEMBER_NAME, STRING, LINE, NO_LINE = 2, 3, 4, 5, 6, 7, 8, 317
DROPPED = {SOURCE_CONTINUED, SOURCE, SOURCE_EXTENSION, NAME, MEMBER_NAME, STRING, LINE, NO_LINE}
HEADER_WORDS = 5


def main():
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    words = struct.unpack(f"<{len(data) // 4}I", data)
    kept, at = list(words[:HEADER_WORDS]), HEADER_WORDS
    while at < len(words):
        count, opcode = words[at] >> 16, words[at] & 0xFFFF
        if count == 0:
            sys.exit(f"strip_spirv.py: {sys.argv[1]}: an instruction of no words at word {at}")
        if opcode not in DROPPED:
            kept += words[at:at + count]
        at += count
    with open(sys.argv[2], "wb") as file:
        file.write(struct.pack(f"<{len(kept)}I", *aligned(kept)))


if __name__ == "__main__":
    main()
