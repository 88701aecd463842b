// The measured arithmetic peak: twelve chains of multiply-adds per thread, in registers.
#include "cpu_peak.h"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <chrono>

namespace millrace::benchmarks {
namespace {

using std::chrono::steady_clock;
constexpr int kChains = 12;
constexpr int kRounds = 20000;

double seconds_since(steady_clock::time_point begin) {
  return std::chrono::duration<double>(steady_clock::now() - begin).count();
}

#if defined(__x86_64__)
typedef float Wide256 __attribute__((vector_size(32)));
typedef float Wide512 __attribute__((vector_size(64)));

// The result goes out, so that the work cannot be left away.
template <class Wide>
[[gnu::always_inline]] inline float chains(float seed) {
  constexpr int kLanes = sizeof(Wide) / sizeof(float);
  Wide sum[kChains];
#pragma GCC unroll 12
  for (int c = 0; c < kChains; ++c) sum[c] = Wide{} + seed + static_cast<float>(c);
  const Wide factor = Wide{} + 0.999f, term = Wide{} + seed;
  for (int i = 0; i < kRounds; ++i) {
#pragma GCC unroll 12  // or the chains live in memory
    for (int c = 0; c < kChains; ++c) {
      sum[c] = sum[c] * factor + term;
      asm("" : "+v"(sum[c]));  // the chains stay apart, in registers
    }
  }
  float total = 0;
#pragma GCC unroll 12
  for (int c = 0; c < kChains; ++c) {
    for (int lane = 0; lane < kLanes; ++lane) total += sum[c][lane];
  }
  return total;
}
[[gnu::target("avx2,fma")]] float chains_256(float seed) { return chains<Wide256>(seed); }
[[gnu::target("avx512f,avx512vl,fma")]] float chains_512(float seed) {
  return chains<Wide512>(seed);
}

double peak(float (*work)(float), int lanes, int threads, double seconds) {
  std::atomic<int> rounds = 0;
  std::atomic<float> sink = 0;
  const auto begin = steady_clock::now();
  tbb::task_arena arena(threads);
  arena.execute([&] {
    tbb::parallel_for(
        0, threads,
        [&](int) {
          do {
            sink = work(1e-3f);
            ++rounds;
          } while (seconds_since(begin) < seconds);
        },
        tbb::simple_partitioner());
  });
  return 2.0 * lanes * kChains * kRounds * rounds / seconds_since(begin) * 1e-9;
}
#endif

}  // namespace

double avx2_peak_gflops(int threads, double seconds) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return peak(chains_256, 8, threads, seconds);
  }
#endif
  static_cast<void>(threads);
  static_cast<void>(seconds);
  return 0;
}

double avx512_peak_gflops(int threads, double seconds) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) {
    return peak(chains_512, 16, threads, seconds);
  }
#endif
  static_cast<void>(threads);
  static_cast<void>(seconds);
  return 0;
}

}  // namespace millrace::benchmarks
