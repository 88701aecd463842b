// The measured arithmetic peak of the processor: fused multiply-adds that depend on nothing else.
#pragma once

namespace millrace::benchmarks {

/// GFLOP/s of 256-bit fused multiply-adds on `threads` threads together, over about `seconds`; 0
/// where the processor has none.
double avx2_peak_gflops(int threads, double seconds);
/// The same of 512-bit ones.
double avx512_peak_gflops(int threads, double seconds);

}  // namespace millrace::benchmarks
