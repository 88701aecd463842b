// The measured peaks of the processor: fused multiply-adds that depend on nothing else, and memory.
#pragma once

namespace millrace::benchmarks {

/// GFLOP/s of 256-bit fused multiply-adds on `threads` threads together, over about `seconds`; 0
/// where the processor has none.
double avx2_peak_gflops(int threads, double seconds);
/// The same of 512-bit ones.
double avx512_peak_gflops(int threads, double seconds);
/// GB/s of a[i] = b[i] + s c[i] over arrays that no cache holds, three times 8 bytes an element.
double memory_gbytes_per_second(int threads);

}  // namespace millrace::benchmarks
