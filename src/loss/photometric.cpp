// The launches of the photometric loss.
#include "loss/photometric.h"

#include "kernels/splat_params.h"
#include "loss/pixel_weights.h"
#include "tensor/launch.h"

namespace millrace {

Tensor upload_photograph(Device& device, std::span<const uint8_t> pixels, uint32_t width,
                         uint32_t height) {
  const Tensor interleaved =
      Tensor::from_host(device, pixels, Shape{height, width, 3}, "photographs");
  Tensor planar = Tensor::empty(device, Shape{3, height, width}, Dtype::U8, "photographs");
  launch(device, KernelId::image_to_planar, uint64_t{width} * height,
         {read(interleaved), write(planar)}, LossParams{width, height, 0, 0});
  return planar;
}

void photometric_loss(const PhotometricLoss& loss) {
  Device& device = loss.image.device();
  LossParams params = {loss.width, loss.height, 0, 0};
  if (loss.weight) params.inputs |= kLossHasWeight;
  if (loss.raw) params.inputs |= kLossHasRaw;
  const uint64_t n = uint64_t{loss.width} * loss.height;
  // What is not there has a stand-in that is not read.
  const Tensor& raw = loss.raw ? *loss.raw : loss.image;
  const Tensor& weight = loss.weight ? *loss.weight : loss.image;
  const Tensor& totals = loss.totals ? *loss.totals : loss.partials;
  launch(device, KernelId::photometric_forward, n,
         {read(loss.step), read(loss.control), read(loss.image), read(loss.target), read(raw),
          read(weight), write(loss.maps), write(loss.partials)},
         params);
  const auto backward = [&](const Tensor& image, const Tensor& d_image, uint32_t inputs) {
    launch(device, KernelId::photometric_backward, n,
           {read(loss.step), read(loss.control), read(image), read(loss.target), read(loss.maps),
            read(weight), read(totals), write(d_image)},
           LossParams{loss.width, loss.height, params.inputs | inputs, 0});
  };
  backward(loss.image, loss.d_image, 0);
  if (loss.raw) backward(*loss.raw, *loss.d_raw, kLossRawGradient);
  if (loss.error_map) {
    LossParams error = params;
    if (loss.mask) error.inputs |= kLossHasMask;
    if (loss.structure) error.inputs |= kLossHasStructure;
    launch(device, KernelId::error_map, n,
           {read(loss.step), read(loss.control), read(loss.maps),
            read(loss.mask ? *loss.mask : loss.target),
            read(loss.structure ? *loss.structure : loss.target), write(*loss.error_map)},
           error);
  }
  if (loss.edge_loss) {
    params.inputs |= kLossHasEdges;
    edge_loss({loss.step, loss.control, loss.image, loss.target, loss.weight, loss.maps,
               loss.d_image, *loss.totals, loss.width, loss.height});
  }
  if (loss.has_penalty) params.inputs |= kLossHasPenalty;
  launch(device, KernelId::photometric_reduce, 1,
         {read(loss.step), read(loss.partials), read(totals), update(loss.control)}, params);
}

}  // namespace millrace
