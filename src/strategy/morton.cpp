// The launches of a reordering.
#include "strategy/morton.h"

#include <cstddef>
#include <initializer_list>

#include "kernels/splat_params.h"
#include "tensor/launch.h"
#include "tensor/ops.h"

namespace millrace {

void morton_reorder(const Model& model, const Tensor& step) {
  Device& device = *model.device;
  const Shape shape{model.row_capacity};
  const Tensor keys = Tensor::empty(device, shape, Dtype::U32, "reordering");
  const Tensor rows = Tensor::empty(device, shape, Dtype::U32, "reordering");
  launch(device, KernelId::morton_keys, model.row_capacity,
         {read(step), read(model.control), read(model.geometry.value), write(keys), write(rows)},
         RowsParams{model.sh_rest.lanes, 0});
  const Tensor order = radix_sort_pairs(keys, rows, live_row_count(model)).values;
  // Through scratch that the tensors of a group share.
  const auto reorder = [&](uint32_t lanes, std::initializer_list<const Tensor*> tensors) {
    if (lanes == 0) return;
    const Tensor scratch =
        Tensor::empty(device, (*tensors.begin())->shape(), Dtype::F32, "reordering");
    for (const Tensor* tensor : tensors) {
      const GatherRowsParams params = {lanes, 0};
      launch(device, KernelId::gather_rows, model.row_capacity,
             {read(step), read(model.control), read(order), read(*tensor), write(scratch)}, params);
      launch(device, KernelId::restore_rows, model.row_capacity,
             {read(step), read(model.control), read(scratch), update(*tensor)}, params);
    }
  };
  for (const ParameterGroup* group : {&model.geometry, &model.sh_rest}) {
    reorder(group->lanes, {&group->value, &group->first_moment, &group->second_moment});
  }
  if (model.statistics.defined()) reorder(kStatisticLanes, {&model.statistics});
}

}  // namespace millrace
