#!/usr/bin/env python3
"""layouts.py OUT.inc FOLDER MODULE...: how the compiled kernels lay out their argument blocks and records.

FOLDER has MODULE.json, the reflection of the CUDA code, and MODULE.full.spv with its names. The two must agree; the
rows of OUT.inc are for tests/kernels/gpu_layout_scenario_test.cpp, which compares them with C++.
"""
import json
import pathlib
import struct
import sys

HEADER_WORDS = 5
NAME, MEMBER_NAME, MEMBER_DECORATE, OFFSET = 5, 6, 72, 35
SUFFIX = "_c"  # of the type that has C's layout


def text_of(words):
    return struct.pack(f"<{len(words)}I", *words).split(b"\0")[0].decode()


def spirv_offsets(data):
    """{struct: {field: offset}} of the structs with C's layout."""
    words = struct.unpack(f"<{len(data) // 4}I", data)
    names, members, offsets = {}, {}, {}
    at = HEADER_WORDS
    while at < len(words):
        count, opcode = words[at] >> 16, words[at] & 0xFFFF
        operands = words[at + 1:at + count]
        if opcode == NAME:
            names[operands[0]] = text_of(operands[1:])
        elif opcode == MEMBER_NAME:
            members[operands[0], operands[1]] = text_of(operands[2:])
        elif opcode == MEMBER_DECORATE and operands[2] == OFFSET:
            offsets[operands[0], operands[1]] = operands[3]
        at += count
    layouts = {}
    for (type_id, index), offset in offsets.items():
        name = names.get(type_id, "")
        if name.endswith(SUFFIX) and (type_id, index) in members:
            layouts.setdefault(name.removesuffix(SUFFIX), {})[members[type_id, index]] = offset
    return layouts


def collect(type_, structs):
    """Adds the struct `type_` and those inside it: {name: (bytes, [(field, offset, bytes, whether it is a vector)])}."""
    if type_["kind"] == "array":
        collect(type_["elementType"], structs)
    if type_["kind"] != "struct":
        return
    fields = []
    for field in type_["fields"]:
        inner = field["type"]
        vector = inner["kind"] == "vector" and inner["elementCount"] == 4
        fields.append((field["name"], field["binding"]["offset"], field["binding"]["size"], vector))
        bindings = inner["kind"] == "struct" and all(f["type"]["kind"] == "pointer" for f in inner["fields"])
        if not bindings:
            collect(inner, structs)
    size = next(s["value"] for s in type_["sizes"] if s["kind"] == "uniform")
    known = structs.setdefault(type_["name"], (size, fields))
    if known != (size, fields):
        sys.exit(f"layouts.py: two layouts of {type_['name']}")


def compare(structs, layouts, module):
    for name, fields in layouts.items():
        known = {field: offset for field, offset, *_ in structs.get(name, (0, []))[1]}
        for field, offset in fields.items():
            if field in known and known[field] != offset:
                sys.exit(f"layouts.py: {module}: {name}.{field} lies at {known[field]} in CUDA and at {offset} in SPIR-V")


def main():
    out, folder, modules = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
    structs, rows = {}, []
    for module in modules:
        blocks = {}  # modules may give theirs the same names
        reflection = json.loads((folder / f"{module}.json").read_text(encoding="utf-8"))
        for entry in reflection["entryPoints"]:
            block = next(p["type"] for p in entry["parameters"] if p["name"] == "args")
            collect(block, blocks)
            size, fields = blocks[block["name"]]
            name, offset, _, _ = fields[-1]
            params = next(f["type"].get("name", "") for f in block["fields"] if f["name"] == name)
            rows.append(f"MILLRACE_GPU_ARGS({entry['name']}, {params or 'None'}, {offset}, {size})\n")
        compare(blocks, spirv_offsets((folder / f"{module}.full.spv").read_bytes()), module)
        for name, layout in blocks.items():
            if not name.endswith("Args") and structs.setdefault(name, layout) != layout:
                sys.exit(f"layouts.py: {module} has another layout of {name}")
    structs.pop("Records", None)  # of the probe
    for name, (size, fields) in sorted(structs.items()):
        rows.append(f"MILLRACE_GPU_RECORD({name}, {size})\n")
        if not any(vector for *_, vector in fields):  # whole loads of 16 bytes have other names in C++
            rows += [f"MILLRACE_GPU_FIELD({name}, {field}, {offset}, {bytes_})\n" for field, offset, bytes_, _ in fields]
    out.write_text("// Made by tools/kernels/layouts.py.\n" + "".join(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
