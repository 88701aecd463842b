"""tools/check.py finds each planted violation in every source kind, and nothing in clean code."""
import importlib.util
import pathlib
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("check", ROOT / "tools" / "check.py")
check = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check)

HEAD = "// A file.\n"

# rule, folder of the file, file name without its kind, what is planted below the head comment
PLANTED = [
    ("layer", "tensor", "a", '#include "data/dataset.h"\n'),
    ("layer", "base", "a", '#include "device/device.h"\n'),
    ("layer", "backends/cpu", "a", '#include "tensor/tensor.h"\n'),
    ("layer", "unheard_of", "a", "int x;\n"),
    ("layer", "", "a", "int x;\n"),
    ("include", "tensor", "a", '#include "tensor.h"\n'),
    ("include", "tensor", "a", '#include "../device/device.h"\n'),
    ("include", "tensor", "a", '#include "device/../data/dataset.h"\n'),
    ("include", "tensor", "a", "#include <base/here.h>\n"),
    ("include", "tensor", "a", "#include SOME_HEADER\n"),
    ("backend-header", "device", "a", '#include "backends/cpu/queue.h"\n'),
    ("backend-header", "app", "a", '#include "backends/cpu/queue.h"\n'),
    ("backend-header", "backends/cuda", "a", '#include "backends/cpu/queue.h"\n'),
    ("kernel-header", "device", "a", '#include "kernels/kernel.h"\n'),
    ("kernel-header", "loss", "a", '#  include  "kernels/strided.h"\n'),
    ("vendor-header", "tensor", "a", "#include <cuda_runtime.h>\n"),
    ("vendor-header", "train", "a", "#import <Metal/Metal.h>\n"),
    ("vendor-header", "kernels", "a", "#include <hip/hip_runtime.h>\n"),
    ("vendor-header", "device", "a", '#include "vulkan/vulkan.h"\n'),
    ("vendor-header", "backends/cpu", "a", "#include <vulkan/vulkan.h>\n"),
    ("vendor-header", "app", "a", "#include <cub/device/device_scan.cuh>\n"),
    ("vendor-name", "tensor", "a", "void f() { cudaMallocAsync(&p, 1); }\n"),
    ("vendor-name", "device", "a", "VkDevice device;\n"),
    ("vendor-name", "train", "a", "#ifdef MILLRACE_WITH_CUDA\n#endif\n"),
    ("vendor-name", "app", "a", "#if defined(__HIP__)\n#endif\n"),
    ("wait", "train", "a", "void f() { changed_.wait(lock); }\n"),
    ("wait", "data", "a", "void f() { changed_->wait_for(lock, ms); }\n"),
    ("wait", "data", "a", "void f() { changed_.wait_until(lock, t); }\n"),
    ("wait", "data", "a", "void f() { flag.\n  wait (false); }\n"),
    ("wait", "device", "a", "void f() { worker.join(); }\n"),
    ("wait", "device", "a", "std::jthread worker;\n"),
    ("wait", "io", "a", "std::future<int> later;\n"),
    ("wait", "io", "a", "auto later = std::async(f);\n"),
    ("wait", "tensor", "a", "std::promise<int> p;\n"),
    ("wait", "kernels", "a", "tbb::task_group group;\n"),
    ("wait", "app", "a", "void f() { std::this_thread::sleep_for(ms); }\n"),
    ("wait", "app", "a", "void f() { usleep(3); }\n"),
    ("wait", "base", "a", "void f() { nanosleep(&t, nullptr); }\n"),
    ("wait", "train", "a", "void f() { while (!ticket.ready()) {} }\n"),
    ("wait", "train", "a", "void f() { while (device->poll() < point); }\n"),
    ("wait", "base", "a", "#define SNOOZE(cv, lock) cv.wait(lock)\n"),
    ("vendor-wait", "backends/cuda", "queue", "void f() { cudaDeviceSynchronize(); }\n"),
    ("vendor-wait", "backends/cuda", "queue", "void f() { api.cuStreamSynchronize(s); }\n"),
    ("vendor-wait", "backends/cuda", "queue", "void f() { cuEventSynchronize(e); }\n"),
    ("vendor-wait", "backends/cuda", "queue", "void f() { cudaMemcpy(a, b, n, kind); }\n"),
    ("vendor-wait", "backends/hip", "queue", "void f() { hipStreamSynchronize(s); }\n"),
    ("vendor-wait", "backends/vulkan", "queue", "void f() { vkWaitSemaphores(d, &i, ns); }\n"),
    ("vendor-wait", "backends/vulkan", "queue", "void f() { vkQueueWaitIdle(q); }\n"),
    ("vendor-wait", "backends/vulkan", "queue", "void f() { vkDeviceWaitIdle(d); }\n"),
    ("vendor-wait", "backends/metal", "queue", "void f() { [buffer waitUntilCompleted]; }\n"),
    ("blocking-name", "tensor", "a", "float item(Tensor t) {\n  return t.read_blocking();\n}\n"),
    ("blocking-name", "data", "a", "Result<Map<int>> Loader::get(int i) const {\n  if (i) { wait_blocking(i); }\n}\n"),
    ("blocking-name", "io", "a", "struct S {\n  void save() { auto go = [&](int x) { d.wait_blocking(x); }; go(1); }\n};\n"),
    ("blocking-name", "device", "a", "template <class T>\nT get(Ticket t) { return read_blocking<T>(t); }\n"),
    ("blocking-name", "loss", "a", "#define READ(t) \\\n  t.read_blocking()\n"),
    ("empty-catch", "app", "a", "void f() { try { g(); } catch (...) { /* never mind */ } }\n"),
    ("empty-catch", "io", "a", "void f() { try { g(); } catch (const E& e) {\n} }\n"),
    ("size", "base", "a", "int x;\n" * check.MAX_LINES),
    ("registry-host", "base", "a", "const char* kHost = \"https://py" + "pi.org/simple\";\n"),
    ("machine-path", "base", "a", "const char* kData = \"/wo" + "rk/data\";\n"),
    ("machine-path", "base", "a", "// see /ho" + "me/me/notes\n"),
]

CLEAN = """\
// Clean code that looks like trouble: // changed.wait(lock); catch (...) {}
#include "base/here.h"
#include <vector>
/* worker.join(); std::async(f); cudaDeviceSynchronize(); */
namespace millrace {
const char* kText = "changed.wait(lock); worker.join(); vkQueueWaitIdle(q); usleep(1)";
const char* kRaw = R"x(std::async("a"); catch (...) {})x";
constexpr int kBig = 1'000'000;
char quote = '"';
// A drain of what is done already is no poll loop.
void drain() { while (!queue.empty() && queue.front().ready()) queue.pop(); }
struct Reader {
  Reader() : value_{1} { wait_blocking(0); }
  ~Reader() { wait_blocking(1); }
  virtual int read_blocking(int at) = 0;
  int both_blocking(int at) { return at > 0 ? read_blocking(at) : 0; }
};
Reader::~Reader() { read_blocking(2); }
Result<void> Reader::finish_blocking(std::span<const std::byte> bytes) {
  for (int i = 0; i < 3; ++i) { if (i) read_blocking(i); }
  try { go(); } catch (const Error& error) { return error; }
}
std::string join(const std::vector<std::string>& parts);
std::filesystem::path wait_log();
}  // namespace millrace
"""


class CheckTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        self.write("src/base/here.h", HEAD)
        for api in ("cuda", "hip", "vulkan", "metal"):
            check.LAYERS[f"backends/{api}"] = ()
            self.addCleanup(check.LAYERS.pop, f"backends/{api}", None)

    def write(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def findings(self):
        return check.check(self.root)[0]

    def rules(self):
        return {rule for _, _, rule, _ in self.findings()}

    def test_every_planted_violation_is_found_in_every_source_kind(self):
        for rule, folder, stem, planted in PLANTED:
            for kind in check.KINDS:
                with self.subTest(rule=rule, kind=kind, planted=planted[:60]):
                    path = self.write(f"src/{folder}/{stem}{kind}".replace("//", "/"), HEAD + planted)
                    self.assertIn(rule, self.rules())
                    path.unlink()
                    self.assertEqual(self.findings(), [])

    def test_a_finding_names_file_and_line(self):
        self.write("src/tensor/a.cpp", HEAD + "\n\nvoid f() { worker.join(); }\n")
        self.assertEqual([(p, n, r) for p, n, r, _ in self.findings()], [("src/tensor/a.cpp", 4, "wait")])

    def test_clean_code_passes_in_every_layer_and_kind(self):
        for layer in check.LAYERS:
            for kind in check.KINDS:
                self.write(f"src/{layer}/clean{kind}", CLEAN)
        self.assertEqual(self.findings(), [])

    def test_allowed_includes_pass(self):
        self.write("src/tensor/a.cpp", HEAD + '#include "device/device.h"\n#include "kernels/kernel_id.h"\n'
                   '#include "kernels/tensor_params.h"\n#include "kernels/table.inc"\n#include "base/result.h"\n')
        self.write("src/backends/cpu/a.cpp", HEAD + '#include "kernels/kernel.h"\n#include "backends/cpu/queue.h"\n')
        self.write("src/backends/vulkan/a.cpp", HEAD + "#include <vulkan/vulkan.h>\nVkDevice device;\n")
        self.write("src/backends/metal/a.mm", HEAD + "#import <Metal/Metal.h>\n")
        self.write("src/kernels/a.slang", HEAD + "import numbers;\nimport kernels.sums;\n")
        self.assertEqual(self.findings(), [])

    def test_slang_imports_obey_the_layers(self):
        self.write("src/kernels/a.slang", HEAD + "import tensor.ops;\n")
        self.assertEqual(self.rules(), {"layer"})

    def test_each_wait_has_its_home(self):
        self.write("src/device/wait_ledger.cpp", HEAD + "void f() { changed.wait(lock); }\n")
        self.write("src/base/worker_pool.cpp", HEAD + "void f() { thread.join(); }\n")
        self.write("src/backends/cuda/stream_wait.cpp", HEAD + "void f() { cuStreamSynchronize(s); }\n")
        self.assertEqual(self.findings(), [])
        self.write("src/data/wait_ledger.cpp", HEAD + "void f() { changed.wait(lock); }\n")
        self.write("src/data/wait.cpp", HEAD + "void f() { waitUntilCompleted(); }\n")
        self.assertEqual(self.rules(), {"wait", "vendor-wait"})

    def test_the_loops_that_own_the_pace_may_call_blocking_functions(self):
        self.write("src/train/a.cpp", HEAD + "void run() { device.wait_blocking(p); }\n")
        self.write("src/app/a.cpp", HEAD + "int main() { run_blocking(); }\n")
        self.assertEqual(self.findings(), [])

    def test_a_file_without_an_opening_comment_is_found(self):
        for kind in check.KINDS:
            path = self.write(f"src/base/bare{kind}", "int x;\n")
            self.assertEqual(self.rules(), {"head"})
            path.unlink()

    def test_a_long_file_warns_before_it_fails(self):
        self.write("src/base/long.cpp", HEAD + "int x;\n" * check.WARN_LINES)
        findings, warnings, _ = check.check(self.root)
        self.assertEqual((findings, len(warnings)), ([], 1))

    def test_tests_mirror_sources(self):
        self.write("src/data/colmap.cpp", HEAD)
        self.write("src/backends/cpu/queue.cpp", HEAD)
        self.write("src/app/main/flags.h", HEAD)
        self.write("tests/data/colmap_test.cpp", HEAD + "TEST(A, B) {}\n")
        self.write("tests/backends/cpu/queue_test.cpp", HEAD + "TEST(A, B) {}\n")
        self.write("tests/app/flags_test.cpp", HEAD + "TEST(A, B) {}\n")
        self.write("tests/app/quickstart_scenario_test.cpp", HEAD + "TEST(A, B) {}\n")
        self.write("tests/data/helpers.cpp", HEAD)
        self.assertEqual(self.findings(), [])

    def test_a_test_that_mirrors_nothing_is_found(self):
        for path in ("tests/data/colmap_test.cpp", "tests/misc/a_test.cpp", "tests/a_test.cpp", "tests/data/cases.cpp"):
            with self.subTest(path=path):
                planted = self.write(path, HEAD + "TEST(A, B) {}\n")
                self.assertEqual(self.rules(), {"mirror"})
                planted.unlink()

    def test_machine_texts_are_found_outside_sources_too(self):
        for path in ("README.md", "docs/a.md", "tools/a", ".ci/run", "cmake/a.cmake", "tests/tools/a.py"):
            with self.subTest(path=path):
                planted = self.write(path, "look in /wo" + "rk/main\n")
                self.assertEqual(self.rules(), {"machine-path"})
                planted.unlink()

    def test_a_layer_table_that_differs_from_cmake_is_found(self):
        rows = "".join(f"millrace_layer({' '.join((name,) + needs)})\n" for name, needs in check.LAYERS.items())
        self.write("CMakeLists.txt", "function(millrace_layer name)\nendfunction()\n" + rows)
        self.assertEqual(self.findings(), [])
        self.write("CMakeLists.txt", rows.replace("millrace_layer(tensor device)", "millrace_layer(tensor data)"))
        self.assertEqual(self.rules(), {"table"})
        self.write("CMakeLists.txt", rows + "millrace_layer(viewer base)\n")
        self.assertEqual(self.rules(), {"table"})


class RepositoryTest(unittest.TestCase):
    def test_the_layer_table_equals_cmakelists(self):
        self.assertEqual(list(check.check_tables(ROOT)), [])


if __name__ == "__main__":
    unittest.main()
