"""tools/check.py finds each planted violation in every source kind, and nothing in clean code."""
import importlib.util
import pathlib
import re
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
    ("vendor-name", "tensor", "a", "CUdeviceptr at;\n"),
    ("vendor-name", "device", "a", "int x = CUDA_SUCCESS;\n"),
    ("vendor-name", "splat", "a", "__global__ void f();\n"),
    ("vendor-name", "loss", "a", "int f() { return threadIdx.x; }\n"),
    ("vendor-name", "kernels", "a", "void f() { CHECK(add<<<1, 2>>>(p)); }\n"),
    ("vendor-name", "strategy", "a", "void f() { thrust::sort(a, b); }\n"),
    ("vendor-name", "train", "a", "vk::raii::Device device;\n"),
    ("vendor-name", "train", "a", "bool f() { return info.id == \"cuda\"; }\n"),
    ("vendor-name", "app", "a", "bool f() { return id.starts_with(\"vulkan\"); }\n"),
    ("vendor-name", "tensor", "a", "bool f() { return \"hip:0\" != id; }\n"),
    ("intrinsic", "kernels/slang", "a", "uint f(uint x) { return firstbithigh(x); }\n"),
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
    ("wait", "train", "a", "void f() { while (not ticket.ready()) {} }\n"),
    ("wait", "train", "a", "void f() { while (ticket.ready() == false) pause(); }\n"),
    ("wait", "tensor", "a", "void f() { for (; !ticket->ready();) {} }\n"),
    ("wait", "strategy", "a", "void f() { do { ++n; } while (!tickets[i].ready()); }\n"),
    ("wait", "train", "a", "void f() { for (;;) { if (ticket.ready()) break; } }\n"),
    ("wait", "splat", "a", "void f() { while (true) {\n  { ++n; }\n  if (device.poll() >= point) return;\n} }\n"),
    ("wait", "backends/cpu", "a", "void f() { while (point > completion.passed()) {} }\n"),
    ("wait", "device", "a", "void f() { while (flag.load(std::memory_order_acquire) == 0) {} }\n"),
    ("wait", "kernels", "a", "void f() { while (flag.test());\n}\n"),
    ("wait", "backends/cuda", "queue", "void f() { while (api.cuEventQuery(e) != 0) {} }\n"),
    ("wait", "backends/vulkan", "queue", "void f() { while (vkGetFenceStatus(d, f) != VK_SUCCESS); }\n"),
    ("wait", "base", "a", "void f() { flag.notify_one(); gate.arrive_and_wait(); }\n"),
    ("wait", "base", "a", "void f() { std::atomic_wait(&flag, 0); }\n"),
    ("wait", "base", "a", "std::counting_semaphore<1> free(1);\n"),
    ("wait", "base", "a", "std::latch ready(2);\n"),
    ("wait", "data", "a", "tbb::concurrent_bounded_queue<int> queue;\n"),
    ("wait", "data", "a", "oneapi::tbb::flow::graph graph;\n"),
    ("wait", "app", "a", "void f() { ::sleep(seconds); }\n"),
    ("wait", "app", "a", "void f() { sleep(seconds); }\n"),
    ("wait", "backends/metal", "queue", "void f() { [NSThread sleepForTimeInterval:1]; }\n"),
    ("wait", "backends/metal", "queue", "void f() { dispatch_group_wait(group, DISPATCH_TIME_FOREVER); }\n"),
    ("wait", "kernels", "a", "void f() { __nanosleep(100); }\n"),
    ("wait", "app", "a", "void f() { poll(&entry, 1, -1); }\n"),
    ("wait", "app", "a", "void f() { ::poll(entries, n, -1); }\n"),
    ("wait", "io", "a", "void f() { std::this_thread::yield(); }\n"),
    ("wait", "io", "a", "void f() { pthread_barrier_wait(&b); }\n"),
    ("vendor-wait", "backends/cuda", "queue", "void f() { cuMemcpyDtoH_v2(a, b, n); }\n"),
    ("vendor-wait", "backends/cuda", "queue", "void f() { cuMemsetD32(a, 0, n); }\n"),
    ("vendor-wait", "backends/cuda", "queue", "void f() { cudaMemcpyPeer(a, 0, b, 1, n); }\n"),
    ("vendor-wait", "backends/hip", "queue", "void f() { hipMemcpyDtoH(a, b, n); hipCtxSynchronize(); }\n"),
    ("vendor-wait", "backends/vulkan", "queue", "int flags = VK_QUERY_RESULT_WAIT_BIT;\n"),
    ("vendor-wait", "device", "a", "void f() { cuCtxSynchronize(); }\n"),
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
    ("blocking-name", "backends/cuda", "stream_wait", "void finish() { cuStreamSynchronize(s); }\n"),
    ("blocking-name", "device", "wait_ledger", "void Ledger::stop(Lock& lock) { changed.wait(lock); }\n"),
    ("blocking-name", "tensor", "a", "constexpr auto kRead = &Device::wait_blocking;\n"),
    ("discarded-result", "io", "a", "void f() { save_rows(3); }\n"),
    ("discarded-result", "io", "a", "void f() {\n  if (x)\n    save_rows(g(3),\n              h(4));\n}\n"),
    ("discarded-result", "io", "a", "void f() { if (x) go(); else count_rows(); }\n"),
    ("discarded-result", "io", "a", "void f() { (void)save_rows(3); }\n"),
    ("discarded-result", "io", "a", "void f() { static_cast<void>(book->save_rows(3)); }\n"),
    ("discarded-result", "io", "a", "void f() { std::ignore = millrace::save_rows(3); }\n"),
    ("discarded-result", "io", "a", "void f() { save_rows(3).ok(); }\n"),
    ("discarded-result", "io", "a", "void f() { books[g(2)].at(1)->save_rows(3); }\n"),
    ("discarded-result", "io", "a", "void f() { switch (x) { case 1: save_rows(3); } }\n"),
    ("discarded-result", "io", "a", "void f() { while (more()) count_rows(); }\n"),
    ("discarded-result", "tensor", "a", "void f() { device.upload(to, bytes); }\n"),
    ("discarded-result", "tensor", "a", "void f() { tensor.device().upload(to, bytes); }\n"),
    ("discarded-result", "device", "a", "void f() { inner_->fill(to, 0); }\n"),
    ("unchecked-launch", "tensor", "a", "void f() { device.launch({kernel, n}); }\n"),
    ("unchecked-launch", "train", "a", "void f() { (void)device_->launch({.kernel = k, .threads = n}); }\n"),
    ("unchecked-launch", "backends/cuda", "queue", "void f() { add<<<blocks, 256, 0, stream>>>(p, n); }\n"),
    ("unchecked-launch", "backends/cuda", "queue", "void f() { add<int, 4><<<1, 2>>>(p); check(cudaGetLastError()); }\n"),
    ("unchecked-launch", "backends/cuda", "queue", "void f() { check_rows<<<1, 2>>>(check(p)); }\n"),
    ("unchecked-launch", "backends/cuda", "queue", "void f() { cuLaunchKernel(k, 1, 1, 1, 2, 1, 1, 0, s, args, nullptr); }\n"),
    ("unchecked-launch", "backends/cuda", "queue", "void f() { (void)api_.cuLaunchKernelEx(&c, k, args, nullptr); }\n"),
    ("unchecked-launch", "backends/cuda", "queue", "void f() { const CUresult r = cuLaunchKernel(k, args); log(r); }\n"),
    ("unchecked-launch", "backends/hip", "queue", "void f() { hipModuleLaunchKernel(k, args); }\n"),
    ("unchecked-launch", "backends/vulkan", "queue", "void f() { vkQueueSubmit2(q, 1, &info, VK_NULL_HANDLE); }\n"),
    ("pacing", "train", "a", "void f_blocking() { d.wait_blocking(p, {WaitReason::Pacing, \"a\"}); }\n"
     "void g_blocking() { d.wait_blocking(p, {WaitReason::Pacing, \"b\"}); }\n"),
    ("pacing", "device", "a", "const WaitSite kOne{WaitReason::Pacing, \"a\"}, kTwo{\n    WaitReason::Pacing, \"b\"};\n"),
    ("empty-catch", "app", "a", "void f() { try { g(); } catch (...) {\n  // It does not matter.\n} }\n"),
    ("empty-catch", "app", "a", "void f() { try { g(); } catch (const std::exception&) { ; } }\n"),
    ("empty-catch", "app", "a", "void f() { try { g(); } catch (const Map<int (*)(int)>& e) { (void)e; } }\n"),
    ("empty-catch", "backends/metal", "queue", "void f() { @try { g(); } @catch (NSException* e) { } }\n"),
    ("empty-catch", "app", "a", "void f() { try { g(); } catch (...) { /* never mind */ } }\n"),
    ("empty-catch", "io", "a", "void f() { try { g(); } catch (const E& e) {\n} }\n"),
    ("size", "base", "a", "int x;\n" * check.MAX_LINES),
    ("registry-host", "base", "a", "const char* kHost = \"https://py" + "pi.org/simple\";\n"),
    ("machine-path", "base", "a", "const char* kData = \"/wo" + "rk/data\";\n"),
    ("machine-path", "base", "a", "// see /ho" + "me/me/notes\n"),
]

# What has a Result: save_rows and count_rows always, upload, launch, fill and copy when a device is asked.
CALLS = """\
Result<void> save_rows(int n);
Result<std::vector<std::pair<int, int>>> count_rows();
class Device {
  virtual Result<void> upload(Slice to, Bytes bytes) = 0;
  virtual Result<void> launch(const Launch& launch) = 0;
  virtual Result<void> fill(Slice to, uint32_t pattern) = 0;
};
class Tensor { void upload(int n) const; };
void launch(Device& device, int n);
"""

# Near misses in a backend's own files.
BACKEND_CLEAN = """\
// Launches that are checked where they stand.
#include "base/here.h"
Result<void> Queue::run() {
  MILLRACE_TRY(status(cuLaunchKernel(k, 1, 1, 1, 2, 1, 1, 0, s, args, nullptr)));
  check((add<int, 4><<<blocks, 256, 0, stream>>>(p, n), cudaGetLastError()));
  CHECK_LAUNCH(add<<<1, 2>>>(p));
  if (cuLaunchKernel(k, args) != CUDA_SUCCESS) return failure();
  const bool ok = vkQueueSubmit(q, 1, &info, fence) == VK_SUCCESS;
  return status(cuLaunchKernelEx(&c, k, args, nullptr));
}
using LaunchKernel = CUresult (*)(CUfunction);
decltype(&cuLaunchKernel) launch_kernel = table.cuLaunchKernel;
template <> std::ostream& operator<<<int>(std::ostream& out, const Box<int>& box);
void copy_later() { cudaMemcpyAsync(a, b, n, kind, s); cuMemcpyDtoHAsync_v2(a, b, n, s); cuMemsetD32Async(a, 0, n, s); }
void order() { cudaStreamWaitEvent(s, e, 0); hipMemcpyDtoHAsync(a, b, n, s); cudaFreeAsync(p, s); cuMemFreeAsync(p, s); }
"""

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
struct Sleeper { int sleep; int wait; int ready() const { return sleep + wait; } };
const char* kHelp = "a device id such as cuda:0 or vulkan";
Result<void> Reader::finish_blocking(std::span<const std::byte> bytes) {
  for (int i = 0; i < 3; ++i) { if (i) read_blocking(i); }
  try { go(); } catch (const Error& error) { return error; }
}
// Results that somebody looks at, and calls that only look like calls of functions with one.
Result<int> Reader::use() {
  MILLRACE_TRY(save_rows(1));
  MILLRACE_ASSIGN(const int n, count_rows());
  save_rows(n).or_raise();
  const Result<void> kept = save_rows(2);
  if (!save_rows(3)) return kept.error();
  if (auto rows = count_rows(); rows.ok()) return rows;
  go(save_rows(4), [&] { return save_rows(5); });
  const auto later = n > 3 ? save_rows(6) : save_rows(7);
  (void)n;
  (void)count_rows;
  tensor.upload(n);
  launch(device, n);
  std::fill(a, b, 0);
  values.fill(0);
  save_rows_later(n);
  rows.save_rows;
  return count_rows();
}
Result<void> save_rows(int n) { return n ? save_rows(n - 1) : Result<void>(); }
int shifted(int x) { return x << 3 >> 3; }
std::vector<std::vector<std::array<int, 3>>> nested;
void drop(Ticket ticket) { if (ticket.ready()) return; while (before < point && !at.compare_exchange_weak(before, point)) {} }
void look() { for (const auto& t : tickets) { if (t.ready()) break; } while (n > 0) { if (n == 3) break; --n; } }
auto point = device.poll(), asleep = sleep_mode(3), passed = completion.passed();
void choose(const Tensor& t) { t.select(0, 1); t.join_rows(2); queue.await(3); }
const WaitSite kSlow{WaitReason::Decode, "decode"};
uint64_t paced(const Row& row) { return row.reason == WaitReason::Pacing ? row.count : ledger.count(WaitReason::Pacing); }
constexpr auto kRead_blocking = &Device::wait_blocking;
void tidy() { try { go(); } catch (const Error& error) { note(error); } }
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
        self.write("src/base/calls.h", HEAD + CALLS)
        for api in ("cuda", "hip", "vulkan", "metal"):
            if f"backends/{api}" in check.LAYERS:
                continue
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

    def test_checked_launches_pass_in_a_backend(self):
        for api in ("cuda", "hip", "vulkan", "metal"):
            for kind in check.KINDS:
                self.write(f"src/backends/{api}/clean{kind}", BACKEND_CLEAN)
        self.assertEqual(self.findings(), [])

    def test_every_rule_on_sources_has_a_planted_violation(self):
        text = (ROOT / "tools" / "check.py").read_text() + (ROOT / "tools" / "check_calls.py").read_text()
        named = set(re.findall(r"yield [^\n]*?\"([a-z]+(?:-[a-z]+)*)\"", text)) - {"head", "mirror", "table", "named-test"}
        self.assertEqual(named - {rule for rule, *_ in PLANTED}, set())

    def test_a_broken_intrinsic_has_one_home(self):
        use = HEAD + "uint f(uint x) { return firstbithigh(x); }\n"
        self.write("src/kernels/slang/u64.slang", use)
        self.assertEqual(self.findings(), [])
        self.write("src/kernels/slang/wave.slang", use)
        self.assertEqual([(p, r) for p, _, r, _ in self.findings()], [("src/kernels/slang/wave.slang", "intrinsic")])

    def test_one_pacing_site_passes(self):
        self.write("src/train/a.cpp", HEAD + "void f() { d.wait_blocking(p, {WaitReason::Pacing, \"a\"}); }\n")
        self.assertEqual(self.findings(), [])
        self.write("src/train/b.cpp", HEAD + "WaitSite kAgain{WaitReason::Pacing, \"b\"};\n")
        self.assertEqual([(p, r) for p, _, r, _ in self.findings()],
                         [("src/train/a.cpp", "pacing"), ("src/train/b.cpp", "pacing")])

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
        self.write("src/device/wait_ledger.cpp", HEAD + "void f_blocking() { changed.wait(lock); }\n")
        self.write("src/base/worker_pool.cpp", HEAD + "void f() { thread.join(); }\n")
        self.write("src/backends/cuda/stream_wait.cpp", HEAD + "void f_blocking() { cuStreamSynchronize(s); }\n")
        self.assertEqual(self.findings(), [])
        self.write("src/data/wait_ledger.cpp", HEAD + "void f() { changed.wait(lock); }\n")
        self.write("src/data/wait.cpp", HEAD + "void f() { waitUntilCompleted(); }\n")
        self.assertEqual(self.rules(), {"wait", "vendor-wait"})

    def test_the_loops_that_own_the_pace_may_call_blocking_functions(self):
        self.write("src/train/a.cpp", HEAD + "void run() { device.wait_blocking(p); }\n")
        self.write("src/app/a.cpp", HEAD + "namespace millrace {\nint main() { run_blocking(); }\n}\n")
        self.assertEqual(self.findings(), [])
        self.write("src/train/a.cpp", HEAD + "namespace millrace {\nvoid Runner::step() { device.wait_blocking(p); }\n}\n")
        self.write("src/app/a.cpp", HEAD + "class View { int draw() { return render_blocking(); } };\n")
        self.assertEqual(sorted(p for p, _, rule, _ in self.findings()), ["src/app/a.cpp", "src/train/a.cpp"])
        self.assertEqual(self.rules(), {"blocking-name"})

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


    def test_a_named_test_that_does_not_exist_is_found(self):
        self.write("src/base/a.cpp", HEAD)
        self.write("tests/base/a_test.cpp", HEAD + "TEST(Apple, Falls) {}\nTEST_P(\n    Pear, Floats) {}\n")
        self.write("tests/README.md", "| a rule | `Apple.Falls`, `Pear.Floats`, `docs/waits.md` |\n")
        self.assertEqual(self.findings(), [])
        self.write("tests/README.md", "| a rule | `Apple.Falls` |\n| another | `Pear.Sinks` |\n")
        self.assertEqual(self.rules(), {"named-test"})


class RepositoryTest(unittest.TestCase):
    def test_the_layer_table_equals_cmakelists(self):
        self.assertEqual(list(check.check_tables(ROOT)), [])


if __name__ == "__main__":
    unittest.main()
