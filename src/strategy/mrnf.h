// The MRNF strategy: statistics of what rows contribute, noise on every step, and refinements that
// remove rows softly, replace them, grow where the error is and let opacity and scale decay.
#pragma once

#include "splat/model.h"
#include "tensor/tensor.h"

namespace millrace {

/// Adds noise to the means of rows that were seen, as the step block says. Part of a step's commit.
void mrnf_noise(const Model& model, const Tensor& step);

/// Measures the scene's bounds (Control::bounds), queued between decide() and commit(). `row_ids`:
/// [row capacity] U32, 0, 1, 2, ...
void mrnf_measure(const Model& model, const Tensor& step, const Tensor& row_ids);

/// Measures the bounds of a model that has not been trained, as a transaction before the first
/// step. `hull_centre`, `hull_radius`: around the training cameras; 0: no hull. `size`: what stands
/// in for the median size if the means have no extent, world units.
void mrnf_begin(const Model& model, const Tensor& row_ids, const float hull_centre[3],
                float hull_radius, float size);

/// One refinement of a model that keeps statistics, queued between decide(check_rows) and
/// commit(adds_rows). `measures`: whether the step block asks for the bounds, which takes launches.
/// Source: TRAINING.md 3.4.
void mrnf_refine(const Model& model, const Tensor& step, const Tensor& row_ids, bool measures);

/// A bound on the rows after a refinement of at most `rows` rows.
uint64_t mrnf_row_bound(uint64_t rows, uint64_t max_rows, float growth_fraction, bool grows);

}  // namespace millrace
