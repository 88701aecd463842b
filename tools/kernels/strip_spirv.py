#!/usr/bin/env python3
"""strip_spirv.py IN OUT [--exact]: drops names, sources and lines from a SPIR-V module, and states its alignments.

Validators of before 2024 refuse a module whose OpSource names Slang. With --exact, the driver may not contract or
reorder float arithmetic, so that one function gives the same bits wherever it is inlined.
"""
import struct
import sys

from align_spirv import aligned

SOURCE_CONTINUED, SOURCE, SOURCE_EXTENSION, NAME, MEMBER_NAME, STRING, LINE, NO_LINE = 2, 3, 4, 5, 6, 7, 8, 317
DROPPED = {SOURCE_CONTINUED, SOURCE, SOURCE_EXTENSION, NAME, MEMBER_NAME, STRING, LINE, NO_LINE}
HEADER_WORDS = 5
# OpFNegate, OpFAdd, OpFSub, OpFMul, OpFDiv and the products of vectors and matrices: result type, result, ...
ARITHMETIC = {127, 129, 131, 133, 136, 142, 143, 144, 145, 146, 147, 148}
DECORATE, NO_CONTRACTION = 71, 42
# What stands before the annotations: capabilities, extensions, imports, the memory model, entry points and modes.
PREAMBLE = {17, 10, 11, 14, 15, 16, 331}


def main():
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    words = struct.unpack(f"<{len(data) // 4}I", data)
    kept, at = list(words[:HEADER_WORDS]), HEADER_WORDS
    results, annotations_at = [], None
    while at < len(words):
        count, opcode = words[at] >> 16, words[at] & 0xFFFF
        if count == 0:
            sys.exit(f"strip_spirv.py: {sys.argv[1]}: an instruction of no words at word {at}")
        if opcode in ARITHMETIC:
            results.append(words[at + 2])
        if opcode not in DROPPED:
            if annotations_at is None and opcode not in PREAMBLE:
                annotations_at = len(kept)
            kept += words[at:at + count]
        at += count
    if "--exact" in sys.argv[3:] and results:
        head = 3 << 16 | DECORATE
        kept[annotations_at:annotations_at] = [word for id_ in results for word in (head, id_, NO_CONTRACTION)]
    with open(sys.argv[2], "wb") as file:
        file.write(struct.pack(f"<{len(kept)}I", *aligned(kept)))


if __name__ == "__main__":
    main()
