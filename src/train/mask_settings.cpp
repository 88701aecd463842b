// Mask modes by name, and their weights on the host.
#include "train/mask_settings.h"

#include <fmt/format.h>

#include <algorithm>

namespace millrace {
namespace {

// Masks of objects keep a tenth of the image and more; masks that mark what to leave out, taken the
// wrong way, keep less.
constexpr double kLooksInverted = 0.1;

}  // namespace

LossStep mask_settings(const TrainOptions& options) {
  LossStep loss = {};
  const auto mode = std::ranges::find(kMaskModes, options.mask_mode) - kMaskModes.begin();
  loss.mask_mode = static_cast<uint32_t>(mode);
  loss.mask_inverted = options.invert_masks ? 1 : 0;
  loss.mask_threshold = static_cast<float>(options.mask_threshold);
  loss.mask_penalty = static_cast<float>(options.mask_penalty);
  return loss;
}

std::vector<float> mask_weights(const std::vector<uint8_t>& mask, const LossStep& loss) {
  if (loss.mask_mode == kMaskNone || loss.mask_mode == kMaskAlphaConsistent) return {};
  std::vector<float> weights;
  weights.reserve(mask.size());
  for (const uint8_t byte : mask) {
    const int value = loss.mask_inverted ? 255 - byte : byte;
    const float share = static_cast<float>(value) / 255.0f;
    const bool keeps =
        loss.mask_mode == kMaskSegmentAndIgnore ? value > 250 : share >= loss.mask_threshold;
    weights.push_back(keeps ? 1.0f : loss.mask_mode == kMaskSegmentAndIgnore ? 0.0f : share);
  }
  return weights;
}

std::string mask_note(const TrainOptions& options, double mean, uint32_t n_masks) {
  const double kept = options.invert_masks ? 1 - mean : mean;
  std::string text =
      fmt::format("the masks of {} photographs keep {:.1f} % of their pixels", n_masks, 100 * kept);
  if (kept < kLooksInverted) {
    text += fmt::format("; if they show what to leave out in white, {} --invert-masks",
                        options.invert_masks ? "leave out" : "use");
  }
  return text;
}

}  // namespace millrace
