// Chooses the instruction set of the hot kernels at start; and the random background they share.
#include <cstdlib>
#include <string_view>

#include "base/philox.h"
#include "kernels/isa/hot.h"

namespace millrace::kernels {

#if defined(__x86_64__)
namespace v2 {
const HotKernels& table();
}
namespace v3 {
const HotKernels& table();
}
namespace v4 {
const HotKernels& table();
}
#else
namespace generic {
const HotKernels& table();
}
#endif

namespace {

const HotKernels& choose() {
  const char* wanted = std::getenv("MILLRACE_ISA");
  for (const char* isa : {wanted ? wanted : "", "v4", "v3", "v2"}) {
    if (const HotKernels* found = hot_kernels_of(isa)) return *found;
  }
  return *hot_kernels_of("generic");
}

}  // namespace

const HotKernels* hot_kernels_of(const char* isa) {
  const std::string_view name = isa;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool has_v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("bmi2");
  const bool has_v4 = has_v3 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vl");
  // There is nothing below v2 to fall back to.
  if (name == "v2") return &v2::table();
  if (name == "v3" && has_v3) return &v3::table();
  if (name == "v4" && has_v4) return &v4::table();
#else
  if (name == "generic") return &generic::table();
#endif
  return nullptr;
}

const HotKernels& hot_kernels() {
  static const HotKernels& table = choose();
  return table;
}

void random_background(const StepBlock& step, uint32_t first, uint32_t n, float* red, float* green,
                       float* blue) {
  for (uint32_t i = 0; i < n; ++i) {
    const auto words = philox(step.seed, step.step, RandomPurpose::Background, first + i);
    red[i] = uniform_open(words[0]);
    green[i] = uniform_open(words[1]);
    blue[i] = uniform_open(words[2]);
  }
}

}  // namespace millrace::kernels
