#!/usr/bin/env python3
"""The lexical gate: layers, waits, dropped errors, names, sizes and mirrored tests, over every source kind.

There is no exemption list. Each rule is a row of a table below; a file that breaks one is mended.
    tools/check.py [--root DIR]        prints findings as path:line: [rule] text, exit 1 on any
"""
import argparse
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_calls

# ---- Tables -------------------------------------------------------------------------------------------

KINDS = (".cpp", ".h", ".cu", ".mm", ".slang")

# layer -> layers it is built on; what those are built on is allowed too. Equal to CMakeLists.txt (checked).
LAYERS = {
    "base": (),
    "kernels": ("base",),
    "device": ("base", "kernels"),
    "backends/cpu": ("device", "kernels", "base"),
    "backends/cuda": ("device", "kernels", "base"),
    "backends/vulkan": ("device", "kernels", "base"),
    "tensor": ("device",),
    "splat": ("tensor",),
    "loss": ("tensor",),
    "appearance": ("splat", "tensor"),
    "strategy": ("splat", "tensor"),
    "data": ("tensor",),
    "io": ("data", "tensor"),
    "formats": ("io",),
    "train": ("splat", "loss", "appearance", "strategy", "data", "io", "formats"),
    "synth": ("data", "io"),
    "bench": ("train", "io"),
    "app": ("train", "synth", "bench", "io", "data", "formats"),
}

# What of kernels/ is an interface (docs/adr/0002); the rest is for kernels and backends alone.
KERNEL_INTERFACE = re.compile(r"kernels/(?:kernel_id\.h|\w+_params\.h|table\.inc)$")

# backend folder -> the vendor headers that it alone may include.
VENDOR_HEADERS = {
    "cuda": re.compile(r"^(?:cuda|cub|cublas|cudnn|cufft|curand|cupti|nvrtc|nvml|nvtx|nvToolsExt|thrust|nccl)"),
    "vulkan": re.compile(r"^(?:vulkan/|volk|vk_|spirv)"),
    "hip": re.compile(r"^(?:hip|rocprim|rocthrust|hsa)[/_.\w]"),
    "metal": re.compile(r"^(?:Metal\w*|QuartzCore)/"),
    "none": re.compile(r"^(?:CL/|sycl/|level_zero/|d3d12|webgpu)"),
}
# Vendor API names and branches on a vendor, outside backends/.
NATIVE_API = re.compile(
    r"\b(?:cuda[A-Z]\w*|cu[A-Z]\w*(?=\s*\()|CU[a-z]\w+|CUDA_\w+|nv(?:rtc|ml)[A-Z]\w*|hip[A-Z]\w*|HIP_\w+|[vV]k[A-Z]\w*|VK_\w+"
    r"|MTL[A-Z]\w*|__(?:global|device|host|shared|constant)__|(?:threadIdx|blockIdx|blockDim|gridDim)(?=\s*\.))\b"
    r"|\b(?:cub|thrust|vk|sycl)\s*::|<<<")
VENDOR_BRANCH = re.compile(r"^[ \t]*#[ \t]*(?:el)?if.*?(?<![a-z])(?:cuda\w*|vulkan|hip|hipcc|rocm|metal)(?![a-z])",
                           re.I | re.M)

# Above the device layer nothing asks which vendor it runs on, not by its name in a string either.
VENDOR_QUESTION = re.compile(
    r"(?:[=!]=|\b(?:starts_with|ends_with|contains|find|compare|strn?cmp)\s*\((?:[^;{}()]*,)?)\s*\"(?:cuda|vulkan|hip|metal)\b"
    r"|\"(?:cuda|vulkan|hip|metal)(?::[^\"]*)?\"\s*[=!]=")
BELOW_THE_FACADE = ("base", "kernels", "device")

# Where host threads may stop: the ledger, and the threads that are not the host's.
WAIT_HOMES = re.compile(r"^src/(?:device/wait_ledger|base/worker_pool)\.\w+$")
WAITS = (
    ("wait on a condition, an atomic, a future or a task group", re.compile(
        r"(?:\.|->)\s*(?:wait|wait_for|wait_until|wait_for_all|run_and_wait|arrive_and_wait|try_acquire_for|try_acquire_until)\s*\("
        r"|\batomic_(?:flag_)?wait(?:_explicit)?\s*\(")),
    ("join", re.compile(r"(?:\.|->)\s*join\s*\(\s*\)")),
    ("thread of its own (use WorkerPool)", re.compile(r"\bstd\s*::\s*j?thread\b(?!\s*::)")),
    ("future, latch, barrier or semaphore", re.compile(
        r"\bstd\s*::\s*(?:future|shared_future|promise|async|packaged_task|latch|barrier|counting_semaphore|binary_semaphore)\b")),
    ("task group or blocking queue", re.compile(r"\b(?:tbb|oneapi)\s*::\s*(?:task_group|flow|concurrent_bounded_queue)\b")),
    ("sleep or yield", re.compile(r"\b(?:sleep_for|sleep_until|usleep|_*nanosleep|clock_nanosleep|sched_yield|_mm_pause|sleepForTimeInterval"
                                  r"|sleepUntilDate|__builtin_ia32_pause)\b|(?<![\w.>:])(?:::\s*)?(?:sleep|Sleep)\s*\(\s*[^\s)]"
                                  r"|\bthis_thread\s*::\s*yield\b")),
    ("system wait", re.compile(r"\b(?:pthread_join|pthread_cond_\w*wait|sem_\w*wait|SYS_futex|epoll_p?wait2?|waitpid|waitid|sigwait\w*|sigsuspend"
                               r"|pthread_barrier_wait|dispatch_semaphore_wait|dispatch_group_wait|dispatch_sync|WaitForSingleObject)\b"
                               r"|(?<![\w>])::\s*(?:poll|select|wait)\s*\(|(?<![\w.>:])p?poll\s*\(\s*[&\w]+[\w.()]*\s*,")),
    ("poll loop", re.compile(
        # while (not ready), for (; not ready;)
        r"\b(?:while\s*\(|for\s*\([^;{}]*;)[^;{}]*(?:(?:!|\bnot\b)\s*[\w.\->()\[\]]*\bready\s*\(|\bready\s*\(\s*\)\s*==\s*false"
        r"|\b(?:poll|passed)\s*\(\s*\)\s*(?:<|!=)|[\w)\]]\s*>=?\s*[\w.\->]*\b(?:poll|passed)\s*\(\s*\))"
        # for (;;) { if (ready) break; }
        r"|\b(?:for\s*\(\s*;\s*;\s*\)|while\s*\(\s*(?:true|1)\s*\))\s*\{(?:[^{}]|\{[^{}]*\})*?"
        r"\bif\s*\([^{};]*\b(?:ready|poll|passed)\s*\(\s*\)[^{};]*\)\s*\{?\s*(?:break|return)\b"
        # do {} while (not ready)
        r"|\bwhile\s*\((?:[^;{}()]|\([^;{}()]*\))*(?:\b(?:load|test|query)|Query|GetFenceStatus|GetEventStatus|CounterValue)\s*\("
        r"(?:[^;{}()]|\([^;{}()]*\))*\)(?:[^;{}()]|\([^;{}()]*\))*\)\s*(?:;|\{\s*;?\s*\})")),
)
# Vendor calls that stop the host: only in src/backends/<api>/ files with "wait" in their name.
VENDOR_WAIT_HOMES = re.compile(r"^src/backends/\w+/\w*wait\w*\.\w+$")
VENDOR_WAITS = re.compile(
    r"\b(?:(?:cuda|hip)(?:Device|Stream|Event|Thread)Synchronize|(?:cu|hip)(?:Ctx|Stream|Event)Synchronize"
    r"|(?:cuda|hip)(?:Memcpy(?!\w*Async)\w*|Memset(?:2D|3D|D8|D16|D32)?|Free|FreeHost|HostFree|FreeArray|DeviceReset)(?=\s*\()"
    r"|cuMemcpy(?!\w*Async)\w*(?=\s*\()|cuMemsetD(?!\w*Async)\w*(?=\s*\()|cuMemFree(?:Host)?(?:_v2)?(?=\s*\()"
    r"|vkWaitSemaphores(?:KHR)?|vkWaitForFences|vkWaitForPresentKHR|vkQueueWaitIdle|vkDeviceWaitIdle|VK_QUERY_RESULT_WAIT_BIT"
    r"|waitUntilCompleted|waitUntilScheduled|waitUntilSignaledValue"
    r"|clFinish|clWaitForEvents|ze(?:Fence|Event)HostSynchronize|zeCommandQueueSynchronize)\b")
# Files in which a raw wait is at home, but not in a function that hides it: its name ends in _blocking.
NAMED_WAIT_HOMES = re.compile(r"^src/(?:device/wait_ledger|backends/\w+/\w*wait\w*)\.\w+$")
# Pacing is one place of the program.
PACING_SITE = re.compile(r"\{\s*(?:\.reason\s*=\s*)?WaitReason\s*::\s*Pacing\s*,|\bWaitSite\b[^;{}]*\bWaitReason\s*::\s*Pacing\b")

# Layers whose entry points (free functions such as train() and main()) own the pace and may call x_blocking() under
# a name of their own. Their classes may not.
PACE_LAYERS = ("train", "app")

# Intrinsics of the kernel language that are wrong on some target, what to write instead, and where that is defined.
BROKEN_INTRINSICS = (
    (re.compile(r"\bfirstbithigh\b"), "highest_bit() of kernels/slang/u64.slang", "src/kernels/slang/u64.slang"),
)

WARN_LINES, MAX_LINES = 400, 800

# Texts that tie a file to one machine or one registry. Scanned in every text file of these places.
TEXT_PLACES = ("src", "tests", "tools", "docs", "cmake", ".ci")
MACHINE_TEXTS = (
    ("registry-host", re.compile(
        r"\b(?:pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|crates\.io|(?:deb|security)\.debian\.org|docker\.io|ghcr\.io"
        r"|anaconda\.(?:org|com)|proxy\.golang\.org|rubygems\.org|(?:archive|ports)\.ubuntu\.com)\b")),
    ("machine-path", re.compile(r"(?<![\w.$}])/(?:work|home|root|Users)/[\w.]")),
)

# ---- Reading source -----------------------------------------------------------------------------------

TOKENS = re.compile(
    r'(?P<raw>(?:u8|[uUL])?R"(?P<d>[^ ()\\\t\n]*)\((?:.|\n)*?\)(?P=d)")'
    r"|(?P<comment>//(?:\\\n|[^\n])*|/\*(?:.|\n)*?(?:\*/|\Z))"
    r'|(?P<string>"(?:\\(?:.|\n)|[^"\\\n])*")'
    r"|(?P<number>(?<!\w)\.?\d(?:'?[\w.])*)|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<char>'(?:\\.|[^'\\\n])+')")


def blank(text):
    """`text` with everything but line ends replaced by spaces, so that positions stay."""
    return re.sub(r"[^\n]", " ", text)


class Source:
    """One file with its comments, and its comments and strings, blanked out."""

    def __init__(self, root, path):
        self.path = path.relative_to(root).as_posix()
        self.text = path.read_text(encoding="utf-8", errors="replace")
        self.no_comments = TOKENS.sub(lambda m: blank(m[0]) if m["comment"] else m[0], self.text)
        self.code = TOKENS.sub(
            lambda m: m[0] if m["number"] or m["word"] else
            blank(m[0]) if m["comment"] else m[0][0] + blank(m[0][1:-1]) + m[0][-1], self.text)
        self.layer = layer_of(self.path.partition("/")[2])

    def line(self, position):
        return self.text.count("\n", 0, position) + 1


def layer_of(path_in_tree):
    """The layer of a path below src/ or tests/, or None. backends/<api> is one layer each."""
    parts = path_in_tree.split("/")
    for depth in (2, 1):
        name = "/".join(parts[:depth])
        if len(parts) > depth and (name in LAYERS or (depth == 2 and parts[0] == "backends")):
            return name
    return None


def allowed_layers(layer):
    """`layer` and everything it may include, through the layers it is built on."""
    if layer.startswith("backends/"):
        return {layer, "device", "kernels", "base"}
    seen, todo = set(), [layer]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += LAYERS[name]
    return {name for name in seen if not name.startswith("backends/")}


# ---- Rules on one file of src/ ------------------------------------------------------------------------

INCLUDE = re.compile(r'^[ \t]*#[ \t]*(?:include|include_next|import)\b[ \t]*(?P<what>[^\n]*)'
                     r'|^[ \t]*(?:__exported[ \t]+)?(?:import|__include)[ \t]+(?P<module>"[^"\n]+"|[\w.]+)[ \t]*;', re.M)


def check_includes(source, root):
    in_backend = source.layer.startswith("backends/")
    for match in INCLUDE.finditer(source.no_comments):
        what = (match["what"] or match["module"] or "").strip()
        where = match.start() + len(match[0]) - len(match[0].lstrip())
        if match["module"] and not what.startswith('"'):
            # A Slang module: `import blend;` is a neighbour, `import kernels.blend;` names a layer.
            if "." not in what:
                continue
            what = '"' + what.replace(".", "/") + '.slang"'
        named = re.match(r'"([^"]+)"|<([^>]+)>', what)
        if not named:
            yield where, "include", f"computed include `{what}`; write the file's name"
            continue
        name = named[1] or named[2]
        if named[2]:
            if (root / "src" / name).is_file():
                yield where, "include", f"<{name}> is a header of this project; write \"{name}\""
            for api, pattern in VENDOR_HEADERS.items():
                if pattern.search(name) and source.layer != f"backends/{api}":
                    yield where, "vendor-header", f"<{name}> belongs in src/backends/{api}/ alone"
            continue
        target = layer_of(name)
        if target is None or ".." in name.split("/") or "." in name.split("/"):
            vendor = [api for api, pattern in VENDOR_HEADERS.items() if pattern.search(name)]
            if vendor:
                if source.layer != f"backends/{vendor[0]}":
                    yield where, "vendor-header", f"\"{name}\" belongs in src/backends/{vendor[0]}/ alone"
            else:
                yield where, "include", f"\"{name}\" does not begin with a layer; write \"<layer>/<file>\""
        elif target.startswith("backends/") and target != source.layer:
            yield where, "backend-header", f"\"{name}\": a backend folder exports no header"
        elif target not in allowed_layers(source.layer):
            yield where, "layer", f"{source.layer} may not include {target} (\"{name}\")"
        elif (target == "kernels" and source.layer != "kernels" and not in_backend
              and not KERNEL_INTERFACE.match(name)):
            yield where, "kernel-header", (f"\"{name}\" is for kernels and backends; others see kernel_id.h, "
                                           "*_params.h and table.inc")


def check_vendor_names(source, root):
    if source.layer.startswith("backends/"):
        return
    for match in NATIVE_API.finditer(source.code):
        yield match.start(), "vendor-name", f"{match[0]} is a vendor's API; it belongs in src/backends/"
    if source.layer != "kernels":
        for match in VENDOR_BRANCH.finditer(source.no_comments):
            yield match.start(), "vendor-name", "#if on a vendor; only backends know which one they are"
    if source.layer not in BELOW_THE_FACADE:
        for match in VENDOR_QUESTION.finditer(source.no_comments):
            yield match.start(), "vendor-name", "a question for a vendor's name; ask DeviceInfo for a property instead"


def check_waits(source, root):
    if not WAIT_HOMES.match(source.path):
        for what, pattern in WAITS:
            for match in pattern.finditer(source.code):
                yield match.start(), "wait", (f"{what} (`{match[0].strip()}`) outside the wait ledger and the worker "
                                              "pool; use WaitLedger or WorkerPool")
    if not VENDOR_WAIT_HOMES.match(source.path):
        for match in VENDOR_WAITS.finditer(source.code):
            yield match.start(), "vendor-wait", (f"{match[0]} stops the host; it belongs in a *wait* file of "
                                                 "src/backends/<api>/")


CONTROL = {"if", "for", "while", "switch", "catch", "constexpr", "return", "sizeof", "decltype", "noexcept", "alignas",
           "__attribute__", "requires", "explicit", "void", "defined"}
NAME_BEFORE_CALL = re.compile(r"((?:[\w~]+\s*::\s*)*[\w~]+)\s*\x01")
TYPE_HEAD = re.compile(r"\b(?:class|struct|union|namespace|enum(?:\s+class)?)\s+(?:alignas\x01\s*)?([\w:]*)[^()]*$")


def scope_of(header):
    """What the brace after `header` opens: ("type", name), ("namespace", name), ("function", name) or ("block", "")."""
    while True:  # innermost parentheses first; one that stays open means we are inside an argument list
        folded = re.sub(r"\([^()]*\)", "\x01", header)
        if folded == header:
            break
        header = folded
    if "(" in header:
        return "block", ""
    while re.search(r"<[^<>]*>", header):
        header = re.sub(r"<[^<>]*>", " ", header)
    kind = TYPE_HEAD.search(header)
    if kind and "\x01" not in header[kind.end(1):]:
        return ("namespace" if kind[0].startswith("namespace") else "type"), kind[1]
    if re.search(r"(?<!operator)(?<![=!<>])=(?!=)", header) or re.match(r"\s*(?:return|else|do|case)\b", header):
        return "block", ""
    for match in NAME_BEFORE_CALL.finditer(header):
        name = re.sub(r"\s+", "", match[1])
        if name not in CONTROL:
            return "function", name
    return "block", ""


def check_blocking_names(source, root):
    owns_pace = source.layer in PACE_LAYERS
    raw_waits = "|".join(pattern.pattern for _, pattern in WAITS[:1]) + "|" + VENDOR_WAITS.pattern
    tokens = r"[{};]|\b\w+_blocking\b"
    if NAMED_WAIT_HOMES.match(source.path):
        tokens += "|" + raw_waits
    directives = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
    for match in directives.finditer(source.code):
        if "_blocking" in match[0]:
            yield match.start(), "blocking-name", "a macro hides a blocking call; write a function that ends in _blocking"
    code = directives.sub(lambda m: blank(m[0]), source.code)
    stack, start = [], 0
    for match in re.finditer(tokens, code):
        token = match[0]
        if token == "{":
            stack.append(scope_of(code[start:match.start()]))
        elif token == "}" and stack:
            stack.pop()
        if token in "{};":
            # A `;` inside for (...) does not end a statement, but scope_of only meets the rest of that header.
            start = match.end()
            continue
        functions = [i for i, (kind, _) in enumerate(stack) if kind == "function"]
        if not functions:
            alias = re.search(r"(\w+)\s*=\s*(?:&\s*)?(?:\w+\s*::\s*)*$", code[start:match.start()])
            if alias and not alias[1].endswith("_blocking") and not re.match(r"\s*\(", code[match.end():]):
                yield match.start(), "blocking-name", f"{alias[1]} is another name of {token}, so it must end in _blocking"
            continue
        name = stack[functions[-1]][1]
        parts = name.split("::")
        types = [n for kind, n in stack[:functions[-1]] if kind == "type"]
        owner = parts[-2] if len(parts) > 1 else (types[-1] if types else "")
        is_structor = parts[-1].startswith("~") or parts[-1] == owner
        is_entry = owns_pace and not owner
        if not is_structor and not is_entry and not parts[-1].endswith("_blocking"):
            yield match.start(), "blocking-name", f"{name} calls {token.strip(' .->(')}, so its own name must end in _blocking"


def check_catches(source, root):
    nothing = r"(?:\s|;|\(\s*void\s*\)\s*\w+\s*;|static_cast\s*<\s*void\s*>\s*\(\s*\w+\s*\)\s*;)*"
    for match in re.finditer(r"@?\bcatch\s*\((?:[^()]|\([^()]*\))*\)\s*\{" + nothing + r"\}", source.code):
        yield match.start(), "empty-catch", "an error is swallowed; handle it or let it pass"


def check_intrinsics(source, root):
    if source.layer != "kernels":
        return
    for pattern, instead, home in BROKEN_INTRINSICS:
        if source.path == home:
            continue
        for match in pattern.finditer(source.code):
            yield match.start(), "intrinsic", f"{match[0]} is wrong on one of the targets; use {instead}"


def check_head(source, root):
    if not re.match(r"\ufeff?\s*(?://|/\*)", source.text):
        yield 0, "head", "the file must open with a comment that says what it holds"


def check_size(source, root):
    lines = source.text.count("\n")
    if lines > MAX_LINES:
        yield 0, "size", f"{lines} lines; split it ({MAX_LINES} is the wall)"


def check_layer_known(source, root):
    yield 0, "layer", "this folder is no layer of the table in tools/check.py"


def check_launches(source, root):
    yield from check_calls.check_native_launches(source)


SRC_RULES = (check_includes, check_vendor_names, check_waits, check_blocking_names, check_catches, check_launches,
             check_intrinsics, check_head, check_size)
TEST_RULES = (check_head, check_size)

# ---- Rules on the tree --------------------------------------------------------------------------------


def check_mirror(source, root):
    """tests/<layer>/<x>_test.cpp tests src/<layer>/<x>.*; <x>_scenario_test.cpp tests a layer as a whole."""
    is_test = re.search(r"\bTEST(?:_F|_P)?\s*\(|\bTYPED_TEST", source.code)
    if is_test and not source.path.endswith("_test.cpp"):
        yield is_test.start(), "mirror", "tests belong in a file whose name ends in _test.cpp"
    if not source.path.endswith("_test.cpp"):
        return
    if source.layer is None:
        yield 0, "mirror", "this folder mirrors no layer of src/"
        return
    stem = source.path.rsplit("/", 1)[1][:-len("_test.cpp")]
    if stem.endswith("_scenario"):
        return
    folder = root / "src" / source.layer
    if not any(p.suffix in KINDS and p.stem == stem for p in folder.rglob(stem + ".*")):
        yield 0, "mirror", (f"src/{source.layer}/{stem}.* does not exist; name the test for its file, or "
                            f"{stem}_scenario_test.cpp if it tests the layer as a whole")


def check_named_tests(root, in_tests):
    """Every `Suite.Test` of tests/README.md exists."""
    table = root / "tests" / "README.md"
    if not table.is_file():
        return
    tests = {f"{suite}.{name}" for source in in_tests
             for suite, name in re.findall(r"\bTEST(?:_F|_P)?\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)", source.code)}
    text = table.read_text(encoding="utf-8")
    for match in re.finditer(r"`([A-Z]\w*\.[A-Z]\w*)`", text):
        if match[1] not in tests:
            yield "tests/README.md", text.count("\n", 0, match.start()) + 1, "named-test", f"there is no test {match[1]}"


def cmake_layers(root):
    """The layer table as CMakeLists.txt has it."""
    text = re.sub(r"#[^\n]*", "", (root / "CMakeLists.txt").read_text(encoding="utf-8"))
    rows = re.findall(r"^\s*millrace_layer\s*\(([^)]*)\)", text, re.M)
    return {row.split()[0]: tuple(row.split()[1:]) for row in rows}


def check_tables(root):
    if not (root / "CMakeLists.txt").is_file():
        return
    in_cmake = cmake_layers(root)
    for name in sorted(set(in_cmake) | set(LAYERS)):
        if set(in_cmake.get(name, ("absent",))) != set(LAYERS.get(name, ("absent",))):
            yield "CMakeLists.txt", 1, "table", (f"layer {name} is {in_cmake.get(name)} here and {LAYERS.get(name)} in "
                                                 "tools/check.py; make them equal")


def check_pacing(in_src):
    sites = [(source, match) for source in in_src for match in PACING_SITE.finditer(source.code)]
    if len(sites) > 1:
        for source, match in sites:
            yield source.path, source.line(match.start()), "pacing", "Pacing has one call site; this is one of several"


def check_results(in_src):
    results, others = check_calls.result_names(in_src)
    for source in in_src:
        for at, rule, text in check_calls.check_discarded(source, results, others):
            yield source.path, source.line(at), rule, text


def text_files(root):
    # In a linked work tree .git is a file that names the machine's main one.
    places = [p for p in root.iterdir() if p.is_file() and p.name != ".git"]
    for place in TEXT_PLACES:
        places += [p for p in (root / place).rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    return sorted(p for p in places if p.stat().st_size < 2_000_000)


def check_texts(root):
    for path in text_files(root):
        data = path.read_bytes()
        if b"\0" in data:
            continue
        text = data.decode("utf-8", errors="replace")
        for rule, pattern in MACHINE_TEXTS:
            for match in pattern.finditer(text):
                yield path.relative_to(root).as_posix(), text.count("\n", 0, match.start()) + 1, rule, \
                    f"`{match[0]}` holds on one machine or registry only"


def sources(root, tree):
    return [Source(root, p) for p in sorted((root / tree).rglob("*")) if p.suffix in KINDS and p.is_file()]


def check(root):
    """(findings, warnings, number of files) of the tree at `root`; a finding is (path, line, rule, text)."""
    findings, warnings = list(check_tables(root)), []
    in_src, in_tests = sources(root, "src"), sources(root, "tests")
    for tree, rules in ((in_src, SRC_RULES), (in_tests, TEST_RULES + (check_mirror,))):
        for source in tree:
            active = rules
            if tree is in_src and source.layer is None:
                active = (check_layer_known, check_head, check_size)
            elif tree is in_src and source.layer not in LAYERS:
                active = rules + (check_layer_known,)
            for rule in active:
                findings += [(source.path, source.line(at), name, text) for at, name, text in rule(source, root)]
            lines = source.text.count("\n")
            if WARN_LINES < lines <= MAX_LINES:
                warnings.append(f"{source.path}: {lines} lines; files split at {WARN_LINES}")
    findings += check_results(in_src)
    findings += check_pacing(in_src)
    findings += check_named_tests(root, in_tests)
    findings += check_texts(root)
    return sorted(set(findings)), warnings, len(in_src) + len(in_tests)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root.resolve()
    findings, warnings, count = check(root)
    for line in warnings:
        print(f"warning: {line}")
    for path, line, rule, text in findings:
        print(f"{path}:{line}: [{rule}] {text}")
    print(f"check: {count} files, {len(findings)} findings, {len(warnings)} warnings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
