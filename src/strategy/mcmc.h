// The MCMC strategy: noise on every step; relocation of dead rows and growth at a refinement.
#pragma once

#include "splat/model.h"
#include "tensor/tensor.h"

namespace millrace {

/// Adds noise to the means, as the step block's noise_scale says. Part of a step's commit.
void mcmc_noise(const Model& model, const Tensor& step);

/// Scratch of a refinement, for `row_capacity` rows.
struct McmcScratch {
  Tensor prefix;     // [capacity] U64
  Tensor dead_list;  // [capacity] U32
  Tensor source;     // [capacity] U32
  Tensor times;      // [capacity] U32
};
McmcScratch make_mcmc_scratch(const Model& model);

/// One refinement, queued between decide(check_rows) and commit(adds_rows): dead rows move onto
/// live ones, then floor(N/20) rows are added up to max_rows of the step block. Source:
/// TRAINING.md 3.7.
void mcmc_refine(const Model& model, const Tensor& step, const McmcScratch& scratch);

/// A bound on the rows after a refinement of at most `rows` rows.
uint64_t mcmc_row_bound(uint64_t rows, uint64_t max_rows);

}  // namespace millrace
