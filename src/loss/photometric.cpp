// The launches of the photometric loss.
#include "loss/photometric.h"

#include "kernels/splat_params.h"
#include "tensor/launch.h"

namespace millrace {

Tensor upload_photograph(Device& device, std::span<const uint8_t> pixels, uint32_t width,
                         uint32_t height) {
  const Tensor interleaved =
      Tensor::from_host(device, pixels, Shape{height, width, 3}, "photographs");
  Tensor planar = Tensor::empty(device, Shape{3, height, width}, Dtype::U8, "photographs");
  launch(device, KernelId::image_to_planar, uint64_t{width} * height,
         {read(interleaved), write(planar)}, LossParams{width, height, 0});
  return planar;
}

void photometric_loss(const PhotometricLoss& loss) {
  Device& device = loss.image.device();
  const LossParams params = {loss.width, loss.height, 0};
  const uint64_t n = uint64_t{loss.width} * loss.height;
  launch(device, KernelId::photometric_forward, n,
         {read(loss.step), read(loss.control), read(loss.image), read(loss.target),
          write(loss.maps), write(loss.partials)},
         params);
  launch(device, KernelId::photometric_backward, n,
         {read(loss.step), read(loss.control), read(loss.image), read(loss.target), read(loss.maps),
          write(loss.d_image)},
         params);
  launch(device, KernelId::photometric_reduce, 1,
         {read(loss.step), read(loss.partials), update(loss.control)}, params);
}

}  // namespace millrace
