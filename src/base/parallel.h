// Loops over oneTBB with results that do not depend on the number of threads.
#pragma once

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <cstdint>

#include "base/thread_checks.h"

namespace millrace {

/// Runs body(begin, end) over [0, n) in pieces of at most `grain`, in any order and in parallel.
/// Bodies must write disjoint data; anything summed across pieces is summed afterwards in a fixed
/// order.
template <class Body>
void parallel_for(uint64_t n, uint64_t grain, const Body& body) {
  if (n == 0) return;
  if (n <= grain) {
    body(uint64_t{0}, n);
    return;
  }
  [[maybe_unused]] LoopScope loop;
  tbb::parallel_for(tbb::blocked_range<uint64_t>(0, n, grain),
                    [&](const tbb::blocked_range<uint64_t>& range) {
                      [[maybe_unused]] const LoopScope::Body scope(loop);
                      body(range.begin(), range.end());
                    });
}

/// Runs body(i) for each fixed block i of [0, n_blocks), one task per block.
template <class Body>
void parallel_blocks(uint64_t n_blocks, const Body& body) {
  parallel_for(n_blocks, 1, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) body(i);
  });
}

}  // namespace millrace
