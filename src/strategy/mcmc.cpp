// The launches of the MCMC strategy.
#include "strategy/mcmc.h"

#include <algorithm>

#include "kernels/splat_params.h"
#include "tensor/launch.h"

namespace millrace {

void mcmc_noise(const Model& model, const Tensor& step) {
  launch(*model.device, KernelId::mcmc_noise, model.row_capacity,
         {read(step), read(model.control), update(model.geometry.value)},
         RowsParams{model.sh_rest.lanes, 0});
}

McmcScratch make_mcmc_scratch(const Model& model) {
  const Shape shape{model.row_capacity};
  Device& device = *model.device;
  return {Tensor::empty(device, shape, Dtype::U64, "refinement"),
          Tensor::empty(device, shape, Dtype::U32, "refinement"),
          Tensor::empty(device, shape, Dtype::U32, "refinement"),
          Tensor::empty(device, shape, Dtype::U32, "refinement")};
}

void mcmc_refine(const Model& model, const Tensor& step, const McmcScratch& scratch) {
  Device& device = *model.device;
  const ParameterGroup& g = model.geometry;
  const ParameterGroup& s = model.sh_rest;
  constexpr uint32_t kRelocate = 0, kGrow = 1;
  for (const uint32_t mode : {kRelocate, kGrow}) {
    const RowsParams params = {s.lanes, mode};
    launch(device, KernelId::mcmc_weights, model.row_capacity,
           {read(step), update(model.control), read(g.value), write(scratch.prefix),
            write(scratch.dead_list)},
           params);
    launch(device, KernelId::mcmc_draw, model.row_capacity,
           {read(step), read(model.control), read(scratch.prefix), write(scratch.source),
            write(scratch.times)},
           params);
    launch(device, KernelId::mcmc_split, model.row_capacity,
           {read(step), read(model.control), read(scratch.times), update(g.value),
            update(g.first_moment), update(g.second_moment), update(s.first_moment),
            update(s.second_moment)},
           params);
    launch(device, KernelId::mcmc_fill, model.row_capacity,
           {read(step), read(model.control), read(scratch.dead_list), read(scratch.source),
            update(g.value), update(g.first_moment), update(g.second_moment), update(s.value),
            update(s.first_moment), update(s.second_moment)},
           params);
  }
}

uint64_t mcmc_row_bound(uint64_t rows, uint64_t max_rows) {
  return std::max(rows, std::min(rows + rows / 20, max_rows));
}

}  // namespace millrace
