// The launches of weights, edges and opacity.
#include "loss/pixel_weights.h"

#include "kernels/splat_params.h"
#include "tensor/launch.h"

namespace millrace {
namespace {

uint64_t pixels_of(uint32_t width, uint32_t height) { return uint64_t{width} * height; }

}  // namespace

void pixel_weights(const PixelWeights& w) {
  LossParams params = {w.width, w.height, 0, 0};
  if (w.mask) params.inputs |= kLossHasMask;
  if (w.structure) params.inputs |= kLossHasStructure;
  // What is not there has a stand-in that is not read.
  launch(w.weight.device(), KernelId::pixel_weights, pixels_of(w.width, w.height),
         {read(w.step), read(w.control), read(w.cameras), read(w.mask ? *w.mask : w.cameras),
          read(w.structure ? *w.structure : w.cameras), write(w.weight), update(w.totals)},
         params);
}

Tensor ridge_map(const Tensor& target, uint32_t width, uint32_t height) {
  Device& device = target.device();
  const Tensor response = Tensor::empty(device, Shape{height, width}, Dtype::F32, "photographs");
  Tensor map = Tensor::empty(device, Shape{height, width}, Dtype::U8, "photographs");
  launch(device, KernelId::ridge_map, pixels_of(width, height),
         {read(target), write(response), write(map)}, LossParams{width, height, 0, 0});
  return map;
}

void edge_loss(const EdgeLoss& e) {
  LossParams params = {e.width, e.height, 0, 0};
  if (e.weight) params.inputs |= kLossHasWeight;
  launch(
      e.d_image.device(), KernelId::edge_loss, pixels_of(e.width, e.height),
      {read(e.step), read(e.control), read(e.image), read(e.target),
       read(e.weight ? *e.weight : e.image), write(e.scratch), update(e.d_image), update(e.totals)},
      params);
}

void opacity_penalty(const OpacityPenalty& p) {
  LossParams params = {p.width, p.height, 0, 0};
  if (p.mask) params.inputs |= kLossHasMask;
  launch(p.d_alpha.device(), KernelId::opacity_penalty, pixels_of(p.width, p.height),
         {read(p.step), read(p.control), read(p.cameras), read(p.mask ? *p.mask : p.cameras),
          read(p.transmittance), write(p.d_alpha), update(p.totals)},
         params);
}

}  // namespace millrace
