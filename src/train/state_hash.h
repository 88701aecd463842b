// state_sha256: a hash of everything that training changes, the same for the same state on every
// run.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "splat/model.h"

namespace millrace {

/// What is hashed beside the model.
struct HashedProgress {
  uint32_t step = 0;  // steps done
  uint64_t seed =
      0;  // with the step, all of the random state: every draw is a function of (seed, step)
};

/// SHA-256, lower-case hexadecimal, over little-endian: "millrace-state-1", N (u64), SH degree
/// (u32), step (u32), seed (u64), then as [N, lanes] rows: geometry, its first and second moments,
/// SH rest and its two; for a model that keeps statistics also "statistics", its free rows (u64),
/// the scene's bounds, and the statistics; then, of each of `more` (what else is learnt, F32), its
/// length (u64) and its elements. Not covered: capacities, padding, addresses, times. The schedules
/// are closed forms of the step. Reads one tensor at a time (reason UserRead), so that hashing
/// needs little memory.
Result<std::string> state_sha256_blocking(const Model& model, const HashedProgress& progress,
                                          std::span<const Tensor> more = {});

}  // namespace millrace
