"""Casts between addresses, spelled for SwiftShader.

It takes an address apart into two words and puts one together, and has no direct way from one type to another.
"""
TYPE_INT, TYPE_VECTOR, TYPE_POINTER, BITCAST = 21, 23, 32, 124
PHYSICAL_STORAGE_BUFFER = 5349
HEADER_WORDS, BOUND = 5, 3


def by_words(words):
    """`words`, a module, with every cast of an address to another type made by way of two words."""
    kept, at = list(words[:HEADER_WORDS]), HEADER_WORDS
    word, pair, types, addresses = None, None, set(), set()
    while at < len(words):
        count, opcode = words[at] >> 16, words[at] & 0xFFFF
        operands = words[at + 1:at + count]
        if opcode == TYPE_INT and operands[1:] == (32, 0):
            word = operands[0]
        elif opcode == TYPE_VECTOR and operands[1:] == (word, 2):
            pair = operands[0]
        elif opcode == TYPE_POINTER and operands[1] == PHYSICAL_STORAGE_BUFFER:
            types.add(operands[0])
        elif len(operands) > 1 and operands[0] in types:
            addresses.add(operands[1])
        if opcode == BITCAST and operands[0] in types and operands[2] in addresses:
            parts = kept[BOUND]
            kept[BOUND] += 1
            kept += [4 << 16 | BITCAST, pair, parts, operands[2], 4 << 16 | BITCAST, operands[0], operands[1], parts]
        else:
            kept += words[at:at + count]
        at += count
    return kept
