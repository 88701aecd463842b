// The launches of the MRNF strategy.
#include "strategy/mrnf.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "kernels/splat_params.h"
#include "splat/render.h"
#include "tensor/launch.h"
#include "tensor/ops.h"

namespace millrace {
namespace {

constexpr uint32_t kBoundsModes = 4;  // three axes, and the sizes of rows

Tensor words(const Model& model) {
  return Tensor::empty(*model.device, Shape{model.row_capacity}, Dtype::U32, "refinement");
}

}  // namespace

void mrnf_noise(const Model& model, const Tensor& step) {
  launch(*model.device, KernelId::mrnf_noise, model.row_capacity,
         {read(step), read(model.control), read(model.statistics), update(model.geometry.value)},
         RowsParams{model.sh_rest.lanes, 0});
}

void mrnf_measure(const Model& model, const Tensor& step, const Tensor& row_ids) {
  Device& device = *model.device;
  const Tensor keys = words(model);
  for (uint32_t mode = 0; mode < kBoundsModes; ++mode) {
    const RowsParams params = {model.sh_rest.lanes, mode};
    launch(device, KernelId::mrnf_bounds_keys, model.row_capacity,
           {read(step), read(model.control), read(model.geometry.value), write(keys)}, params);
    const Tensor sorted = radix_sort_pairs(keys, row_ids, live_row_count(model)).keys;
    launch(device, KernelId::mrnf_bounds, 1, {read(step), update(model.control), read(sorted)},
           params);
  }
}

void mrnf_begin(const Model& model, const Tensor& row_ids, const float hull_centre[3],
                float hull_radius, float size) {
  constexpr auto kFirst = static_cast<int64_t>(offsetof(Control, bounds) / sizeof(float));
  std::vector<uint32_t> record(sizeof(SceneBounds) / sizeof(uint32_t));
  SceneBounds bounds = {};
  std::copy_n(hull_centre, 3, bounds.hull_centre);
  bounds.hull_radius = hull_radius;
  bounds.median_size = size;
  std::memcpy(record.data(), &bounds, sizeof(bounds));
  model.control.slice(0, kFirst, kFirst + static_cast<int64_t>(record.size())).upload(record);
  // The gate is open and nothing was accepted yet: transaction 0 is before the first step's.
  const Tensor step = upload_step_block(*model.device, StepBlock());
  decide(model, step, /*check_rows=*/false);
  mrnf_measure(model, step, row_ids);
  commit(model, step, CommitMode::Other);
}

void mrnf_refine(const Model& model, const Tensor& step, const Tensor& row_ids, bool measures) {
  Device& device = *model.device;
  const ParameterGroup& g = model.geometry;
  const ParameterGroup& s = model.sh_rest;
  const RowsParams params = {s.lanes, 0};
  const uint64_t rows = model.row_capacity;
  if (measures) mrnf_measure(model, step, row_ids);

  const Tensor counts =
      Tensor::empty(device, Shape{sizeof(MrnfCounts) / sizeof(uint32_t)}, Dtype::U32, "refinement");
  const Tensor free_list = words(model), edge_keys = words(model);
  launch(device, KernelId::mrnf_classify, rows,
         {read(step), update(model.control), read(model.statistics), update(g.value),
          update(g.first_moment), update(g.second_moment), update(s.value), update(s.first_moment),
          update(s.second_moment), write(counts), write(free_list), write(edge_keys)},
         params);
  const Tensor edges = radix_sort_pairs(edge_keys, row_ids, live_row_count(model)).keys;

  // Two draws without replacement: in place of removed rows, then to grow.
  const Tensor replace_keys = words(model);
  launch(device, KernelId::mrnf_replace_keys, rows,
         {read(step), read(model.control), read(model.statistics), read(g.value), read(counts),
          read(edges), write(replace_keys)},
         params);
  const SortedPairs replaced = radix_sort_pairs(replace_keys, row_ids, live_row_count(model));
  launch(device, KernelId::mrnf_grow_keys, rows,
         {read(step), update(model.control), read(model.statistics), read(g.value), update(counts),
          read(edges), read(replace_keys), read(replaced.keys), read(replaced.values),
          write(edge_keys)},
         params);
  const Tensor grown = radix_sort_pairs(edge_keys, row_ids, live_row_count(model)).values;

  launch(
      device, KernelId::mrnf_split, rows,
      {read(step), read(model.control), read(counts), read(replaced.values), read(grown),
       read(free_list), update(g.value), update(g.first_moment), update(g.second_moment),
       update(s.value), update(s.first_moment), update(s.second_moment), update(model.statistics)},
      params);
  launch(device, KernelId::mrnf_decay, rows,
         {read(step), read(model.control), update(g.value), update(model.statistics)}, params);
}

uint64_t mrnf_row_bound(uint64_t rows, uint64_t max_rows, float growth_fraction, bool grows) {
  const uint64_t more = grows ? grown_by(rows, growth_parts(growth_fraction)) : 0;
  return std::max(rows, std::min(rows + more, max_rows));
}

}  // namespace millrace
