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
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool has_v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("bmi2");
  const bool has_v4 = has_v3 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl");
  const char* wanted = std::getenv("MILLRACE_ISA");
  const std::string_view isa = wanted ? wanted : "";
  if (isa == "v2") return v2::table();
  if (isa == "v3" && has_v3) return v3::table();
  return has_v4 ? v4::table() : has_v3 ? v3::table() : v2::table();
#else
  return generic::table();
#endif
}

}  // namespace

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
