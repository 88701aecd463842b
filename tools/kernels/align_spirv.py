"""Natural alignment for what a SPIR-V module loads and stores through addresses.

Slang's C layout promises 4 bytes for vectors and for what holds them, and drivers then make four loads of one. Our
records lie as CUDA wants them too: two words at multiples of 8, four at multiples of 16, a struct as its widest member.
"""

TYPE_INT, TYPE_FLOAT, TYPE_VECTOR, TYPE_ARRAY, TYPE_STRUCT, TYPE_POINTER, LOAD, STORE = 21, 22, 23, 28, 30, 32, 61, 62
PHYSICAL_STORAGE_BUFFER, ALIGNED = 5349, 2
HEADER_WORDS = 5
WORD_BITS = 32


def instructions(words):
    at = HEADER_WORDS
    while at < len(words):
        count = words[at] >> 16
        yield at, words[at] & 0xFFFF, count
        at += count


def natural_alignments(words):
    """{type: bytes} of 32-bit words, vectors of two and four of them, and of arrays and structs that hold such vectors."""
    alignments = {}
    for at, opcode, count in instructions(words):
        operands = words[at + 1:at + count]
        if opcode in (TYPE_INT, TYPE_FLOAT) and operands[1] == WORD_BITS:
            alignments[operands[0]] = 4
        elif opcode == TYPE_VECTOR and operands[1] in alignments:
            alignments[operands[0]] = 4 * operands[2] if operands[2] in (2, 4) else 4
        elif opcode == TYPE_ARRAY:
            alignments[operands[0]] = alignments.get(operands[1], 4)
        elif opcode == TYPE_STRUCT:
            alignments[operands[0]] = max((alignments.get(member, 4) for member in operands[1:]), default=4)
    return alignments


def aligned(words):
    """`words`, a module, with the alignments of accesses through addresses raised to those of their types."""
    words = list(words)
    alignments = natural_alignments(words)
    pointers, value_types = {}, {}
    for at, opcode, count in instructions(words):
        if opcode == TYPE_POINTER and words[at + 2] == PHYSICAL_STORAGE_BUFFER:
            pointers[words[at + 1]] = alignments.get(words[at + 3], 4)
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
