"""Rules of tools/check.py on calls: Results that are dropped and launches that nobody checks.

A call is read from the code alone, with comments and strings blanked; the functions that return a Result are
those that a header of src/ declares so.
"""
import re

# ---- What returns a Result ----------------------------------------------------------------------------

RESULT_HEAD = re.compile(r"\bResult\s*<")
DECLARED = re.compile(r"\s*&?\s*(?:\w+\s*::\s*)*(?P<name>\w+)\s*\(")
# `Type name(` of any other type; what reads like it and is no declaration is in NO_TYPES.
OTHER_DECLARED = re.compile(r"(?<![\w.>:])(?P<type>[A-Za-z_][\w:]*)(?:\s*<[^;{}()]*>)?[\s*&]+(?:\w+\s*::\s*)*(?P<name>\w+)\s*\(")
NO_TYPES = {"return", "else", "do", "new", "case", "throw", "delete", "goto", "co_return", "co_await", "co_yield", "not",
            "and", "or", "Result", "sizeof", "operator", "typename", "using", "namespace", "public", "private"}
# Names that the standard library has as well.
STANDARD = {"copy", "fill", "find", "get", "load", "store", "open", "close", "read", "write", "swap", "move", "insert", "erase"}
# Where a name is declared with and without a Result (Device::upload, Tensor::upload), the receiver tells.
DEVICE = re.compile(r"(?:^|[.>:])(?:\w*_)?(?:device|inner)_?(?:\(\))?(?:\.|->)$", re.I)


def closing(code, at):
    """The position of the bracket that closes the one at `at`, or the end."""
    pairs, depth = {"(": ")", "[": "]", "{": "}"}, 0
    opened, closed = code[at], pairs[code[at]]
    for i in range(at, len(code)):
        depth += (code[i] == opened) - (code[i] == closed)
        if depth == 0:
            return i
    return len(code) - 1


def opening(code, at):
    """The position of the bracket that the one at `at` closes, or 0."""
    pairs, depth = {")": "(", "]": "["}, 0
    closed, opened = code[at], pairs[code[at]]
    for i in range(at, -1, -1):
        depth += (code[i] == closed) - (code[i] == opened)
        if depth == 0:
            return i
    return 0


def end_of_angles(code, at):
    """The position after the template arguments that begin at the `<` at `at`, or None."""
    depth = 0
    for i in range(at, min(len(code), at + 400)):
        depth += (code[i] == "<") - (code[i] == ">")
        if depth == 0:
            return i + 1
        if code[i] in ";{}":
            return None
    return None


def result_names(sources):
    """(names that headers declare to return a Result, names that are declared with another type too)."""
    results, others = set(), set(STANDARD)
    for source in sources:
        if source.path.endswith(".h"):
            for match in RESULT_HEAD.finditer(source.code):
                end = end_of_angles(source.code, match.end() - 1)
                declared = DECLARED.match(source.code, end) if end else None
                if declared:
                    results.add(declared["name"])
    for source in sources:
        others |= {m["name"] for m in OTHER_DECLARED.finditer(source.code) if m["type"] not in NO_TYPES} & results
    return results, others


# ---- Statements ---------------------------------------------------------------------------------------

CONTROL_HEADS = ("if", "for", "while", "switch", "constexpr")


def chain_begin(code, at):
    """Where the expression `a.b(c)->d::name` begins whose last name begins at `at`."""
    while True:
        i = at - 1
        while i >= 0 and code[i].isspace():
            i -= 1
        if code[max(i - 1, 0):i + 1] in ("->", "::"):
            i -= 2
        elif i >= 0 and code[i] == ".":
            i -= 1
        else:
            return at
        while i >= 0 and code[i].isspace():
            i -= 1
        while i >= 0 and code[i] in ")]":
            i = opening(code, i) - 1
            while i >= 0 and code[i].isspace():
                i -= 1
        begin = i
        while begin >= 0 and (code[begin].isalnum() or code[begin] == "_"):
            begin -= 1
        if begin == i and code[i + 1:i + 2] not in ("(", "["):
            return i + 1 if i + 1 < at else at  # `::name`
        at = begin + 1


def before(code, at):
    """What stands before the expression at `at`: "statement", "void" for a cast that drops it, or "other"."""
    i = at - 1
    while i >= 0 and code[i].isspace():
        i -= 1
    if i < 0 or code[i] in ";{}":
        return "statement"
    if code[i] == ")":
        begin = opening(code, i)
        if re.fullmatch(r"\s*void\s*", code[begin + 1:i]):
            return "void"
        head = re.search(r"(\w+)\s*$", code[:begin])
        return "statement" if head and head[1] in CONTROL_HEADS else "other"
    if code[i] == "(" and re.search(r"\bstatic_cast\s*<\s*void\s*>\s*$", code[:i]):
        return "void"
    if code[i] == "=" and re.search(r"\b(?:std\s*::\s*)?ignore\s*$", code[:i]):
        return "void"
    if code[i] == ":" and code[i - 1:i] != ":":
        begin = max(code.rfind(c, 0, i) for c in ";{}") + 1
        return "statement" if re.fullmatch(r"\s*(?:case\b[^?]*|\w+\s*)", code[begin:i]) else "other"
    word = re.search(r"(\w+)$", code[:i + 1])
    return "statement" if word and word[1] in ("else", "do") else "other"


def statement_around(code, at):
    """(begin, end) of the statement that `at` lies in, all brackets around `at` included."""
    begin, end = at, at
    while begin > 0 and code[begin - 1] not in ";{}":
        begin -= 1
        if code[begin] in ")]":
            begin = opening(code, begin)
    while end < len(code) and code[end] not in ";{}":
        end = closing(code, end) + 1 if code[end] in "([" else end + 1
    return begin, end


# ---- Rules --------------------------------------------------------------------------------------------


def check_discarded(source, results, others):
    """Calls of functions that return a Result, as statements of their own or cast to void."""
    code = source.code
    local = {m["name"] for m in OTHER_DECLARED.finditer(code) if m["type"] not in NO_TYPES}
    for match in re.finditer(r"\b([A-Za-z_]\w*)\s*(?:<[\w\s:,*&]*>\s*)?\(", code):
        name = match[1]
        if name not in results:
            continue
        begin = chain_begin(code, match.start())
        where = before(code, begin)
        if where == "other":
            continue
        receiver = re.sub(r"\s+", "", code[begin:match.start()])
        if (name in others or name in local) and not DEVICE.search(receiver):
            continue
        end = closing(code, match.end() - 1) + 1
        rest = re.match(r"\s*(\.\s*(?:ok|error|value)\s*\(\s*\)\s*)?([;,)])", code[end:])
        if rest and (where == "void" or rest[2] != ")"):
            rule = "unchecked-launch" if name == "launch" else "discarded-result"
            yield match.start(), rule, f"the Result of {name}() is dropped; use MILLRACE_TRY, or_raise() or look at ok()"


# The calls that hand work to a vendor's queue; their status is looked at where they stand.
NATIVE_LAUNCH = re.compile(
    r"\b(?:cuLaunch(?:Cooperative)?Kernel(?:Ex)?|cudaLaunch(?:Cooperative)?Kernel(?:ExC)?|cuGraphLaunch|cudaGraphLaunch"
    r"|hip(?:Module|Ext)?Launch(?:Cooperative)?Kernel(?:GGL|ExC)?|hipGraphLaunch|vkQueueSubmit2?(?:KHR)?)\s*\(")
ANGLE_LAUNCH = re.compile(r"(?<!operator)<<<")
CHECKED = re.compile(r"\b\w*(?:check|try|or_raise|require|expect|assert)\w*\s*\(|^\s*return\b|^\s*(?:if|while)\s*\("
                     r"|(?:[=!]=)\s*\w+|\bco_return\b", re.I)


def check_native_launches(source):
    """`kernel<<<...>>>(...)` and cuLaunchKernel and its like, without a check in the same statement."""
    code = source.code
    found = [(m.start(), m.end() - 1) for m in NATIVE_LAUNCH.finditer(code)]
    for match in ANGLE_LAUNCH.finditer(code):
        close = code.find(">>>", match.end())
        arguments = re.match(r"\s*\(", code[close + 3:]) if close >= 0 else None
        if arguments:
            found.append((match.start(), close + 2 + arguments.end()))
    for at, bracket in found:
        begin, end = statement_around(code, at)
        # Arguments hold checks of other things.
        around = code[begin:at] + " " + code[closing(code, bracket) + 1:end]
        if not CHECKED.search(around):
            yield at, "unchecked-launch", "a launch without a check in its statement; wrap it, or compare its status here"
