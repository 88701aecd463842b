// What the render and gradient tests ask of the code under test, in host arrays.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/gaussian_cloud.h"
#include "data/dataset.h"
#include "device/device.h"
#include "splat/oracle.h"
#include "splat/scene.h"

namespace millrace::test {

/// A frame as a device drew it; shapes as in OracleFrame.
struct DeviceFrame {
  std::vector<float> image, alpha, depth;
};
DeviceFrame device_render(Device& device, const GaussianCloud& cloud, const Camera& camera,
                          const OracleStep& step);

/// Room for fewer instances than a frame needs, and the bands that make up for it.
struct BandLimit {
  uint64_t capacity = 0;  // 0: room for all
  uint32_t n_bands = 1;
};

/// Gradients by every parameter, in the shapes of the cloud.
struct DeviceGradients {
  GaussianCloud d_cloud;
  std::vector<float> weights;  // [N], sum of blend weights
  double loss = 0;
};

/// Gradients of sum(d_image x image) + sum(d_alpha x alpha); no `d_alpha`: of the first alone.
DeviceGradients device_gradients(Device& device, const GaussianCloud& cloud, const Camera& camera,
                                 const OracleStep& step, const std::vector<float>& d_image,
                                 const std::vector<float>& d_alpha = {}, BandLimit limit = {});
/// Gradients of the loss against `target`, without regularisers.
DeviceGradients device_loss_gradients(Device& device, const GaussianCloud& cloud,
                                      const Camera& camera, const OracleStep& step,
                                      const std::vector<uint8_t>& target);

/// A model and its moments after `n_steps` steps of Adam on one view.
struct DeviceModel {
  GaussianCloud cloud, first_moment, second_moment;
  bool operator==(const DeviceModel& other) const;
};
enum class Epilogue { FusedAdam, GradientBuffer };
DeviceModel device_train(Device& device, const GaussianCloud& cloud, const Camera& camera,
                         const OracleStep& step, const std::vector<uint8_t>& target, int n_steps,
                         Epilogue epilogue, BandLimit limit = {});

}  // namespace millrace::test
