"""Natural alignment for what a SPIR-V module loads and stores through addresses.

Slang's C layout promises 4 bytes for vectors, and drivers then make four loads of one. Our vectors lie as CUDA wants
them too: two words at multiples of 8, four at multiples of 16.
"""

TYPE_INT, TYPE_FLOAT, TYPE_VECTOR, TYPE_POINTER, LOAD, STORE = 21, 22, 23, 32, 61, 62
PHYSICAL_STORAGE_BUFFER, ALIGNED = 5349, 2
HEADER_WORDS = 5
WORD_BITS = 32


def instructions(words):
    at = HEADER_WORDS
    while at < len(words):
        count = words[at] >> 16
        yield at, words[at] & 0xFFFF, count
        at += count


def aligned(words):
    """`words`, a module, with the alignments of accesses to vectors of 2 and 4 words raised to 8 and 16."""
    words = list(words)
    scalars, vectors, pointers, value_types = set(), {}, {}, {}
    for at, opcode, count in instructions(words):
        if opcode in (TYPE_INT, TYPE_FLOAT) and words[at + 2] == WORD_BITS:
            scalars.add(words[at + 1])
        elif opcode == TYPE_VECTOR and words[at + 2] in scalars and words[at + 3] in (2, 4):
            vectors[words[at + 1]] = 4 * words[at + 3]
        elif opcode == TYPE_POINTER and words[at + 2] == PHYSICAL_STORAGE_BUFFER and words[at + 3] in vectors:
            pointers[words[at + 1]] = vectors[words[at + 3]]
        elif count > 2 and words[at + 1] in pointers:
            value_types[words[at + 2]] = words[at + 1]  # an address: result type, result
        operands = {LOAD: 3, STORE: 1}.get(opcode)
        if operands is None:
            continue
        mask_at = at + operands + (2 if opcode == STORE else 1)
        type_id = value_types.get(words[at + operands])
        if type_id in pointers and mask_at + 1 < at + count and words[mask_at] & ALIGNED:
            words[mask_at + 1] = max(words[mask_at + 1], pointers[type_id])
    return words
